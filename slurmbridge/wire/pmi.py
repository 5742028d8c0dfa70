"""PMI version 1 as MPICH speaks it over PMI_FD: lines in, lines out, a key-value space with barriers. Sans I/O.

One `Space` per step and node. Puts become visible everywhere at the next barrier: a node whose tasks have all come sends
its puts to rank 0 (`take_puts`), which answers with everybody's (`release`). Limits and answers are those a real Slurm's
mpi/pmi2 gives. Source: the PMI-1 wire protocol of MPICH (`simple_pmi`).
"""

from __future__ import annotations

from itertools import groupby

KVSNAME_MAX, KEY_MAX, VALUE_MAX = 256, 64, 1024
LINE_MAX = 4096
MAPPING = "PMI_process_mapping"


def mapping(nodes: list[list[int]]) -> str:
    """`(vector,(first node,nodes,tasks each),...)` from the task ids of each node."""
    where = {task: index for index, ids in enumerate(nodes) for task in ids}
    runs = [(node, len(list(tasks))) for node, tasks in groupby(where[task] for task in sorted(where))]
    blocks: list[list[int]] = []
    for node, count in runs:
        if blocks and blocks[-1][2] == count and blocks[-1][0] + blocks[-1][1] == node:
            blocks[-1][1] += 1
        else:
            blocks.append([node, 1, count])
    return "(vector," + ",".join(f"({first},{size},{count})" for first, size, count in blocks) + ")"


class Space:
    """Tasks of one node; `line` answers one request."""

    def __init__(self, name: str, size: int, local: list[int], process_mapping: str) -> None:
        self._name, self._size, self._local = name, size, set(local)
        self._values = {MAPPING: process_mapping}
        self._puts: dict[str, str] = {}
        self._waiting: set[int] = set()
        self._finished: set[int] = set()
        self.aborted: int | None = None

    @property
    def is_full(self) -> bool:
        """Whether all tasks here wait in the barrier."""
        return bool(self._waiting) and self._waiting | self._finished >= self._local

    def take_puts(self) -> dict[str, str]:
        """What was put here since the last barrier."""
        puts, self._puts = self._puts, {}
        return puts

    def release(self, values: dict[str, str]) -> list[tuple[int, str]]:
        """Everybody has come: the lines that let the tasks go on."""
        self._values.update(values)
        waiting, self._waiting = sorted(self._waiting), set()
        return [(task, "cmd=barrier_out rc=0\n") for task in waiting]

    def gone(self, task: int) -> None:
        """This task has ended: nobody waits for it any more."""
        self._finished.add(task)

    def line(self, task: int, text: str) -> str:
        """The answer to one line; empty when it comes later (barrier) or never."""
        words = dict(word.partition("=")[::2] for word in text.strip().split(" "))
        command = words.get("cmd", "")
        if command == "init":
            good = words.get("pmi_version") == "1"
            return f"cmd=response_to_init pmi_version=1 pmi_subversion=1 rc={0 if good else -1}\n"
        if command == "get_maxes":
            return f"cmd=maxes rc=0 kvsname_max={KVSNAME_MAX} keylen_max={KEY_MAX} vallen_max={VALUE_MAX}\n"
        if command == "get_appnum":
            return "cmd=appnum rc=0 appnum=-1\n"
        if command == "get_universe_size":
            return f"cmd=universe_size rc=0 size={self._size}\n"
        if command == "get_my_kvsname":
            return f"cmd=my_kvsname rc=0 kvsname={self._name}\n"
        if command == "put":
            return self._put(words.get("key", ""), text.strip().partition(" value=")[2])
        if command == "get":
            value = self._values.get(words.get("key", ""))
            return "cmd=get_result rc=1\n" if value is None else f"cmd=get_result rc=0 value={value}\n"
        if command == "barrier_in":
            self._waiting.add(task)
            return ""
        if command == "finalize":
            self._finished.add(task)
            return "cmd=finalize_ack rc=0\n"
        if command == "abort":
            code = words.get("exitcode", "1")
            self.aborted = int(code) if code.lstrip("-").isdecimal() else 1
            return ""
        return f"cmd={command} rc=-1 msg=unsupported\n"

    def _put(self, key: str, value: str) -> str:
        if not key or len(key) > KEY_MAX or len(value) > VALUE_MAX:
            return "cmd=put_result rc=-1\n"
        self._puts[key] = self._values[key] = value
        return "cmd=put_result rc=0\n"
