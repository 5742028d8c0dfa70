"""Steps of a run, as rank 0 owns them: numbers, waiting, sub-allocation, the talk with each srun, records.

Every step belongs to one connection; when that goes, the step is ended. Who may connect is decided by the peer's uid:
the job's user and root.
"""

from __future__ import annotations

import signal
import socket
import time
from typing import TYPE_CHECKING, Any

from slurmbridge.supervisor import layout, spawn
from slurmbridge.supervisor.guest import Guest
from slurmbridge.supervisor.loop import Link
from slurmbridge.supervisor.step_env import part_of
from slurmbridge.supervisor.step_request import checked, checked_programs, checked_signal, checked_size, checked_whole
from slurmbridge.supervisor.step_state import Adapt, RunningStep, record_of, state_of
from slurmbridge.supervisor.tasks import STDIN_MOST, Tasks
from slurmbridge.supervisor.usage import NOTHING, add
from slurmbridge.wire import step as wire
from slurmbridge.wire.client import pack, unpack
from slurmbridge.wire.supervisor import decode, encode, split_env

if TYPE_CHECKING:
    from slurmbridge.supervisor.head import Head

MAX_CONNECTIONS = 1024


class Steps:
    """See the module docstring."""

    def __init__(self, head: Head, base_env: dict[str, str]) -> None:
        self._head, self._base_env = head, base_env
        self._ranks: list[dict[str, Any]] = head.header["ranks"]
        self._next = int(head.header.get("first_step", 0))
        self._live: dict[int, RunningStep] = {}
        self._waiting: list[RunningStep] = []
        self._records: list[dict[str, object]] = []
        self._links: list[Link] = []  # to sruns
        self.terminating = False
        self.tasks = Tasks(head.node, head.header, base_env, lambda step, kind, load: self._answer(0, step, kind, load))
        self.tasks.is_blocked = lambda: any(step.link.is_full for step in self._live.values())

    @property
    def is_running(self) -> bool:
        return any(step.is_started for step in self._live.values())

    # ---- srun's side

    def connected(self, sock: socket.socket, uid: int, pid: int, adapt: Adapt = dict) -> None:
        """Somebody dialled the run's step socket. `adapt`: what the run makes of an environment from elsewhere."""
        self._links = [link for link in self._links if link.is_open]
        if uid not in (0, int(self._head.header["uid"])) or len(self._links) >= MAX_CONNECTIONS:
            sock.close()
            return
        holder: list[Link] = []
        mine: list[RunningStep] = []

        def on_frame(kind: bytes, payload: bytes) -> None:
            try:
                if not mine and kind == wire.REQUEST:
                    version, request, env = unpack(payload)
                    if version != wire.VERSION:
                        self._refuse(holder[0], ["srun: error: this srun is of another version than the job"])
                        return
                    mine.append(RunningStep(holder[0], checked(decode(request)), adapt(split_env(env))))
                    self._admit(mine[0])
                elif mine:
                    self._from_client(mine[0], kind, payload)
                else:
                    guest.frame(kind, payload)
            except Exception as error:  # the border of a request: it fails alone, the job and its other steps go on
                if mine:
                    self._client_lost(mine[0])
                self._refuse(holder[0], [f"srun: error: malformed request: {error!r}"])

        def on_lost() -> None:
            if mine:
                self._client_lost(mine[0])
            guest.lost()

        holder.append(Link(self._head.loop, sock, on_frame, on_lost, wire.MAX_FRAME))
        holder[0].on_drained = self._drained
        guest = Guest(self._head, holder[0], self._live, self._from_client)
        self._links.append(holder[0])

    def _drained(self) -> None:
        if not self.tasks.is_blocked():
            self.tasks.resume()

    def _refuse(self, link: Link, lines: list[str], code: int = 1) -> None:
        link.send(wire.REFUSED, encode({"lines": lines, "exit": code}))
        link.close()

    def _admit(self, step: RunningStep) -> None:
        if self._head.is_ending or self.terminating:
            job = self._head.job_id
            text = f"srun: error: Unable to create step for job {job}: Job/step already completing or completed"
            self._refuse(step.link, [text])
            return
        verdict = self._planned(step)
        if isinstance(verdict, layout.Never):
            self._refuse(step.link, [f"srun: error: {line}" for line in verdict.lines])
        elif isinstance(verdict, layout.Wait):
            if step.request.get("immediate"):
                job = self._head.job_id
                self._refuse(step.link, [f"srun: error: Unable to create step for job {job}: {verdict.reason}"])
                return
            if step not in self._waiting:
                self._waiting.append(step)
                step.link.send(wire.WAITING, verdict.reason.encode())
        else:
            self._create(step, verdict)

    def _planned(self, step: RunningStep) -> layout.Layout | layout.Wait | layout.Never:
        limits = layout.Limits.of(self._head.header)
        return layout.plan(step.request, self._head.job_id, self._places(), limits, earlier=self._next)

    def _create(self, step: RunningStep, plan: layout.Layout) -> None:
        step.step, step.plan, step.start = self._next, plan, time.time()
        self._next += 1
        free = {place.rank: place.free_devices for place in self._places()}
        for rank, ids in zip(plan.ranks, plan.tasks, strict=True):
            step.devices[rank] = self._devices(step.request, free[rank], len(ids), len(plan.ranks))
        self._live[step.step] = step
        step.left = set(plan.ranks)
        created = {
            "job": self._head.job_id,
            "step": step.step,
            "notes": list(plan.notes),
            "kill_wait": self._head.header["kill_wait"],
            "kill_on_bad_exit": self._head.header["kill_on_bad_exit"],
            "wait_time": self._head.header["wait_time"],
            **self._head.told_with_steps,
            "nodes": [
                {"name": self._ranks[rank]["node"], "tasks": list(ids), "cpus": self._ranks[rank]["cpus"]}
                for rank, ids in zip(plan.ranks, plan.tasks, strict=True)
            ],
        }
        step.link.send(wire.CREATED, encode(created))

    def _devices(self, request: dict[str, Any], free: tuple[int, ...], tasks: int, nodes: int) -> tuple[int, ...]:
        """The step's devices on a node: what it asks of those no other step has; all when it does not ask."""
        asked = request.get("gpus_per_node")
        if request.get("gpus_per_task"):
            asked = int(request["gpus_per_task"]) * tasks
        elif request.get("gpus") is not None:
            asked = -(-int(request["gpus"]) // nodes)
        return free if asked is None else free[: int(asked)]

    def _places(self) -> list[layout.Place]:
        held: dict[int, int] = {}
        used: dict[int, set[int]] = {}
        for step in self._live.values():
            if step.holds and step.plan is not None:
                for rank, cpus in zip(step.plan.ranks, step.plan.cpus, strict=True):
                    held[rank] = held.get(rank, 0) + cpus
                if any(step.request.get(name) is not None for name in ("gpus_per_node", "gpus_per_task", "gpus")):
                    for rank, devices in step.devices.items():
                        used.setdefault(rank, set()).update(devices)
        places = []
        for rank, node in enumerate(self._head.header["ranks"]):
            devices = tuple(index for index, _, _ in node["devices"] if index not in used.get(rank, ()))
            free = max(0, node["cpus"] - held.get(rank, 0))
            places.append(
                layout.Place(
                    rank, node["node"], node["cpus"], node["tasks"], free, devices, node["memory"], len(node["devices"])
                )
            )
        return places

    def _from_client(self, step: RunningStep, kind: bytes, payload: bytes) -> None:
        if kind == wire.GO and step.plan is not None and not step.is_started:
            go = decode(payload) if payload else {}
            if "multi" in go:
                step.request["multi"] = checked_programs(go["multi"], sum(len(ids) for ids in step.plan.tasks))
            if "het" in go:
                step.request["het"] = checked_whole(go["het"])
            self._launch(step)
            for early, content in step.early:
                self._from_client(step, early, content)
        elif kind in (wire.STDIN, wire.STDIN_END) and step.plan is not None and not step.is_started:
            if sum(len(content) for _, content in step.early) > STDIN_MOST:
                raise ValueError("too much before the tasks were let go")
            step.early.append((kind, payload))
        elif kind in (wire.STDIN, wire.STDIN_END) and step.plan is not None:
            number = wire.parse_data(payload)[0] if kind == wire.STDIN else int(payload)
            for rank, ids in zip(step.plan.ranks, step.plan.tasks, strict=True):
                if number == wire.ALL_TASKS or number in ids:
                    self._to_rank(rank, step.step, kind, payload)
        elif kind == wire.SIZE and step.is_started and step.request.get("pty") and step.plan is not None:
            size = encode({"size": checked_size(decode(payload).get("size"))})
            for rank, ids in zip(step.plan.ranks, step.plan.tasks, strict=True):
                if 0 in ids:
                    self._to_rank(rank, step.step, kind, size)
        elif kind == wire.SIGNAL and step.is_started:
            value = decode(payload)
            if value.get("why") and not step.announced:
                self._say(step, str(value["why"]))
            step.cancelled = step.cancelled or bool(value.get("why"))
            self._signal(step, checked_signal(value["signal"]))

    def _launch(self, step: RunningStep) -> None:
        plan = step.plan
        assert plan is not None
        step.is_started = True
        if step.request.get("limit"):
            step.timer = self._head.loop.after(float(step.request["limit"]), lambda: self._expire(step))
        self._head.report({"kind": "step", "step": record_of(step, self._ranks, "RUNNING")})
        for index in range(len(plan.ranks)):
            part, env = part_of(self._head.header, self._base_env, step, index, self._end_time())
            self._to_rank(plan.ranks[index], step.step, wire.PART, pack(encode(part), env))

    def _expire(self, step: RunningStep) -> None:
        """The step's own time limit (srun --time). Observed: srun is told of no abort then."""
        if step.step in self._live:
            self._cancel(step, "DUE TO TIME LIMIT", tells_srun=False)
            self._signal(step, signal.SIGCONT)
            self._signal(step, signal.SIGTERM)
            wait = float(self._head.header["kill_wait"])
            step.timer = self._head.loop.after(wait, lambda: self._signal(step, signal.SIGKILL))

    def _end_time(self) -> int:
        return self._head.limits.end_time()

    # ---- the ranks' side

    def from_rank(self, rank: int, kind: bytes, payload: bytes) -> None:
        """A frame of a rank's tasks."""
        number, content = wire.unnumber(payload)
        self._answer(rank, number, kind, content)

    def rank_lost(self, rank: int) -> None:
        """A node is gone with its tasks."""
        for step in list(self._live.values()):
            if rank in step.left:
                self._part_ended(step, rank, dict(NOTHING))

    def _answer(self, rank: int, number: int, kind: bytes, payload: bytes) -> None:
        step = self._live.get(number)
        if step is None:
            return
        if kind in (wire.STDOUT, wire.STDERR):
            step.tell(kind, payload)
        elif kind == wire.DONE:
            value = decode(payload)
            step.statuses[int(value["task"])] = int(value["status"])
            step.tell(kind, payload)
        elif kind == wire.BARRIER:
            self._barrier(step, rank, decode(payload)["values"])
        elif kind == wire.ABORT:
            self._say(step, "DUE TO TASK FAILURE")
            self._signal(step, signal.SIGKILL)
        elif kind == wire.ROOM:
            had_room = not step.full
            (step.full.discard if payload == b"1" else step.full.add)(rank)
            if had_room == bool(step.full):
                step.link.send(wire.ROOM, b"0" if step.full else b"1")
        elif kind == wire.PART_ENDED:
            self._part_ended(step, rank, decode(payload)["usage"])

    def _barrier(self, step: RunningStep, rank: int, values: dict[str, str]) -> None:
        """PMI: when the tasks of all nodes that still run have come, everybody gets what was put."""
        step.in_barrier.add(rank)
        step.values.update(values)
        self._pass_barrier(step)

    def _pass_barrier(self, step: RunningStep) -> None:
        if step.in_barrier and step.in_barrier >= step.left:
            step.in_barrier.clear()
            payload = encode({"values": step.values})
            for each in sorted(step.left):
                self._to_rank(each, step.step, wire.BARRIER, payload)

    def _part_ended(self, step: RunningStep, rank: int, usage: dict[str, object]) -> None:
        if rank not in step.left:
            return
        step.left.discard(rank)
        step.usage = add(step.usage, usage)
        if not step.left:
            self._finish(step)
        else:
            self._pass_barrier(step)

    def _finish(self, step: RunningStep) -> None:
        record = record_of(step, self._ranks, state_of(step))
        self._records.append(record)
        del self._live[step.step]
        if step.timer is not None:
            step.timer.cancel()
        if not self._head.node.is_ending:
            self._head.report({"kind": "step", "step": record})
        step.tell(wire.FINISHED, encode({}))
        step.link.close()
        self._wake()
        if not self.is_running:
            self._head.steps_done()

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for step in waiting:
            if step.link.is_open:
                self._waiting.append(step)
                verdict = self._planned(step)
                if isinstance(verdict, layout.Layout):
                    self._waiting.remove(step)
                    self._create(step, verdict)

    def _to_rank(self, rank: int, step: int, kind: bytes, payload: bytes) -> None:
        if rank == 0:
            self.tasks.command(step, kind, payload)
        else:
            self._head.peers.send(rank, kind, wire.number(step, payload))

    # ---- signals and ends

    def _signal(self, step: RunningStep, number: int) -> None:
        if step.plan is None:
            return
        for rank in step.plan.ranks:
            self._to_rank(rank, step.step, wire.SIGNAL, encode({"signal": number}))

    def signal(self, number_of_step: int, number: int) -> None:
        """One step, as scancel JOB.STEP: SIGTERM and SIGKILL end it."""
        step = self._live.get(number_of_step)
        if step is None or not step.is_started:
            return
        if number in (signal.SIGKILL, signal.SIGTERM):
            self._cancel(step, "DUE to SIGNAL " + str(signal.strsignal(number)))
        self._signal(step, number)

    def signal_all(self, number: int) -> None:
        """All running steps."""
        for step in self._live.values():
            if step.is_started:
                self._signal(step, number)

    def _cancel(self, step: RunningStep, words: str, *, tells_srun: bool = True) -> None:
        step.cancelled = True
        if tells_srun:
            step.link.send(wire.ABORTED, encode({"wait": int(self._head.header["kill_wait"]) + 2}))
        self._say(step, words)

    def _say(self, step: RunningStep, words: str) -> None:
        if step.announced or step.plan is None:
            return
        step.announced = True
        rank, when = step.plan.ranks[0], time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime())
        node = self._head.header["ranks"][rank]["node"]
        text = f"*** STEP {self._head.job_id}.{step.step} ON {node} CANCELLED AT {when} {words} ***"
        self._to_rank(rank, step.step, wire.MESSAGE, spawn.log_line(text))

    def say_cancelled(self, words: str) -> None:
        """The job is being ended: every step says so."""
        for step in self._live.values():
            if step.is_started:
                self._cancel(step, words)

    def terminate(self, words: str) -> None:
        """The batch script is gone: its steps end too."""
        self.terminating = True
        for step in list(self._live.values()):
            if step.is_started:
                self._cancel(step, words or "DUE to SIGNAL Terminated")
                self._signal(step, signal.SIGCONT)
                self._signal(step, signal.SIGTERM)
            else:
                step.link.abandon()

    def _client_lost(self, step: RunningStep) -> None:
        if step in self._waiting:
            self._waiting.remove(step)
            return
        if step.step not in self._live:
            return
        if not step.is_started:
            del self._live[step.step]
            self._wake()
            return
        step.cancelled = True
        self._signal(step, signal.SIGKILL)

    def finish_all(self, why: str) -> None:
        """Nothing runs any more: what was not reported as ended has."""
        for step in list(self._live.values()):
            step.cancelled = step.cancelled or why != "exit"
            if step.is_started:
                self._records.append(record_of(step, self._ranks, state_of(step)))
                step.tell(wire.FINISHED, encode({}))
            step.link.close()
        self._live.clear()

    # ---- records

    def records(self) -> list[dict[str, object]]:
        """Of all steps that ran."""
        return self._records
