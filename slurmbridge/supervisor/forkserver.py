"""Started by path before the daemon opens anything: forks supervisors and knows nothing else (design 8.8).

    python -I -S .../slurmbridge/supervisor/forkserver.py FD FILES

FILES is the soft limit of open files that jobs begin with (the daemon may have raised its own). FD is a SOCK_SEQPACKET
socket from the daemon; each message on it carries one descriptor, the supervisor's end of a fresh socketpair, and says
whether the job gets namespaces (s) or not (f). The child closes all else and reads its launch from there.
Single-threaded; standard library only; ends when the daemon's end of FD is closed. Supervisors live on.
"""

from __future__ import annotations

import gc
import os
import resource
import signal
import socket
import sys


def main(fd: int, files: int) -> None:
    """Serve until the daemon is gone."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    from slurmbridge.supervisor import boot

    control = socket.socket(fileno=fd)
    os.set_inheritable(fd, False)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    gc.collect()
    gc.freeze()
    gc.disable()
    control.send(b"ready")
    while True:
        try:
            message, descriptors, _, _ = socket.recv_fds(control, 16, 1)
        except InterruptedError:
            continue
        if not message:
            return
        try:
            child = os.fork()
        except OSError:
            child = -1
        if child == 0:
            try:
                control.close()
                boot.begin(descriptors[0], namespaces=message == b"s")
            finally:
                os._exit(1)
        for descriptor in descriptors:
            os.close(descriptor)


if __name__ == "__main__":
    # `-I -S` leaves only the standard library on the path; ours is two folders up
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    main(int(sys.argv[1]), int(sys.argv[2]))
