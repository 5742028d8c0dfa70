// Process 1 of a pod's and of a node's namespaces: it does nothing, collects the orphans that end, and leaves when asked.
#include <signal.h>
#include <stddef.h>
#include <sys/wait.h>

int main(void) {
    sigset_t awaited;
    sigemptyset(&awaited);
    sigaddset(&awaited, SIGCHLD);
    sigaddset(&awaited, SIGTERM);
    sigaddset(&awaited, SIGINT);
    sigprocmask(SIG_BLOCK, &awaited, NULL);
    for (;;) {
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
        int number;
        if (sigwait(&awaited, &number) == 0 && number != SIGCHLD)
            return 0;
    }
}
