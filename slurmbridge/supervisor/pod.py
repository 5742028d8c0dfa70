"""The first process of a job's container: gets its launch from the daemon and is the run's supervisor on this node.

    /opt/slurmbridge/bin/python3 -I -S pod.py --daemon HOST:PORT --pin SHA256 --token FILE --job N --restart N --rank N
        --node NAME [--same SOURCE TARGET]...

It runs as the job's user and can become nobody else. Being the first process it reaps what others leave, and its end is the
container's. Standard library only; needs nothing of the image. `--base` and `--words` are for those who try it elsewhere.
"""

from __future__ import annotations

import os
import sys


def start(words: list[str]) -> int:
    """The exit code. What goes wrong is said in the container's log."""
    try:
        from slurmbridge.supervisor.pod_begin import main

        return main(words)
    except BaseException:
        import traceback  # with all that it needs, only for those who need it

        traceback.print_exc()
        return 70


if __name__ == "__main__":
    # `-I -S` leaves only the standard library on the path; ours is two folders up
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    os._exit(start(sys.argv[1:]))
