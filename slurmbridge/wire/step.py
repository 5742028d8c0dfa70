"""What srun and the supervisors say about steps: several at once, their streams, stdin and signals. Sans I/O.

Frames are those of `wire.client`. srun talks to the supervisor of rank 0 over `step` in the run's spool folder; rank 0
passes the parts on to the other ranks over their links, there with the step's number in front of each payload
(`number`, `unnumber`). Unknown keys of JSON payloads are ignored; an unknown version is refused.

srun to rank 0
    q  request: pack(version, JSON request, environment)       g  go: srun is ready, start the tasks: {}, with {"multi": [argv...]},
       with {"het": {"leader", "offset", "node_offset", "nodes", "tasks", "cpus"}} as a component of a larger step: where it
       begins in it, and all nodes with tasks and CPUs on each
    i  standard input: pack(task or -1 for all, data)          e  its end: pack(task or -1)
    s  signal: {"signal"}, with {"why"} when the step is ended by it
    z  size of srun's terminal: {"size": [rows, columns]}
sattach and sbcast to rank 0
    t  attach: pack(version, {"step"}); copies of o, x, d, m, f follow c; i is passed on
    l  (srun) lay a file down that nothing keeps where srun is: pack(version, path); after y its bytes come bare, without
       frames, until the connection ends; f instead of y: errno
    p  put a file: pack(version, {"dest", "mode", "force", "times"}); then each i (bare bytes) after a y, e at its end;
       f is {"errno", "node"}
rank 0 to srun
    c  created: {"step", "job", "nodes": [{"name", "tasks": [...], "cpus"}, ...]}, in pods with "mounts": [[folder, whether
       what is written there stays], ...]
    w  text for stderr while the step waits for resources      r  refused: {"lines": [...], "exit"}
    o  stdout, x  stderr: pack(task, data)                     d  task ended: {"task", "node", "status"}
    m  text for srun's stderr                                  a  the step is being aborted: {"wait": seconds}
    f  finished: {}; the last frame                            h  room for standard input: 0 (stop sending) or 1
rank 0 to rank k: n  part: pack(JSON part, environment); i, e, s, z as above; b  barrier passed: {"values"}
rank k to rank 0: o, x, d, m, h as above; b  all here wait in the barrier: {"values"}; k  end the step: {"code"};
u  all tasks of the part have ended: {"usage"}
where each node has files of its own, p, i, e and back y, f too, under numbers of files; f from rank 0: the sender is gone

Request (all optional but argv, cwd): argv, cwd, umask, name, submit_line, nodes, ntasks, cpus_per_task, per_node,
nodelist, exclude, relative, distribution, plane, exact, overlap, external, overcommit, immediate, mpi, gpus,
gpus_per_node, gpus_per_task, gpu_bind, launch_address (of an srun outside of the job), hidden (variables that its tasks lack), out,
err, in (node-side patterns), append, rlimits, pty ([rows, columns]: task 0 gets a terminal, the others nothing), log (debug level), client (what srun keeps for itself: label, unbuffered,
output, error, input, quiet, kill, wait, multi, disable_status).
"""

from __future__ import annotations

from slurmbridge.wire.client import pack, unpack

VERSION = b"1"
MAX_FRAME = 8 * 1024 * 1024
ALL_TASKS = -1
BLOCK = 1 << 20
"""Bytes of a file in one frame."""

REQUEST, GO, STDIN, STDIN_END, SIGNAL, SIZE = b"q", b"g", b"i", b"e", b"s", b"z"
ATTACH, CAST, MORE, LAY = b"t", b"p", b"y", b"l"
CREATED, WAITING, REFUSED, STDOUT, STDERR, DONE, MESSAGE, ABORTED, FINISHED = (
    b"c", b"w", b"r", b"o", b"x", b"d", b"m", b"a", b"f",
)  # fmt: skip
PART, PART_ENDED, BARRIER, ABORT, ROOM = b"n", b"u", b"b", b"k", b"h"


def data(task: int, content: bytes) -> bytes:
    """Payload of i, e, o and x."""
    return pack(b"%d" % task, content)


def parse_data(payload: bytes) -> tuple[int, bytes]:
    """(task, content); ValueError when malformed."""
    parts = unpack(payload)
    if len(parts) != 2:
        raise ValueError("not task and data")
    return int(parts[0]), parts[1]


def number(step: int, payload: bytes) -> bytes:
    """A payload on the link between ranks."""
    return step.to_bytes(4, "big") + payload


def unnumber(payload: bytes) -> tuple[int, bytes]:
    """(step, payload) again; ValueError when too short."""
    if len(payload) < 4:
        raise ValueError("a step frame without its step")
    return int.from_bytes(payload[:4], "big"), payload[4:]
