"""How is the text of one option read? A reader per kind of the option table: text -> fields, or Slurm's complaint.

Wording and exit codes follow sbatch, srun and salloc 26.05. A reader answers `Values`, pairs of (field, value), or `Bad`.
Fields that are no field of JobRequest are working values of `submit.merge`. Nothing here knows the cluster; what only the
controller can refuse (arrays, dependencies, licences, features) stays text.
"""

from __future__ import annotations

from functools import lru_cache

from slurmbridge.errors import LangError
from slurmbridge.lang import binding, mail, rlimits, signals
from slurmbridge.model.request import MemoryPer
from slurmbridge.submit import value_containers as containers
from slurmbridge.submit import value_devices as devices
from slurmbridge.submit import value_plain as plain
from slurmbridge.submit import value_shape as shape
from slurmbridge.submit.option import Option
from slurmbridge.submit.value import Bad, Clock, Reader, Values, error, fatal, invalid


def read_mail_type(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    try:
        return (("mail_type", mail.parse(text or "")),)
    except LangError:
        return invalid(option)


def read_signal(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    try:
        return (("signal", signals.parse_option(text or "")),)
    except LangError:
        return invalid(option)


def read_open_mode(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    """The first letter counts."""
    found = {"a": "append", "t": "truncate"}.get((text or "")[:1].lower())
    return invalid(option) if found is None else (("open_mode", found),)


_PROFILES = ("energy", "lustre", "network", "task")


def read_profile(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    words = (text or "").lower().split(",")
    if words in (["none"], ["all"]):
        return (("profile", words[0].capitalize()),)
    known = [word.capitalize() for word in words if word in _PROFILES]
    return (("profile", ",".join(known)),) if known else error(f"invalid --profile={text or ''} option")


def read_propagate(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    try:
        rlimits.parse(text or "ALL")
    except LangError as problem:
        name = problem.text or text or ""
        return Bad((("error", f"Bad rlimit name: {name}"), ("error", f"--propagate={text} is not valid.")), 1)
    return (("propagate", text or "ALL"),)


def read_acctg_freq(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    for part in (text or "").split(","):
        name, equals, interval = part.rpartition("=")
        known = not equals or name.lower() in ("task", "energy", "network", "filesystem")
        if part and not (known and interval.isdecimal()):
            return error(f"Invalid --acctg-freq specification: {part}")
    return (("acctg_freq", text),)


def read_pty(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    """The descriptor of a terminal."""
    if text and not (text.isascii() and text.isdecimal()):
        return fatal(f"--pty={text} must be numeric file descriptor")
    return (("pty", text or "0"),)


def read_requeue(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    if not text:
        return (("requeue", True), ("+requeue-expedite", False))
    if text == "expedite":
        return (("requeue", True), ("+requeue-expedite", True))
    return invalid(option)


def read_no_requeue(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    return (("requeue", False), ("+requeue-expedite", False))


def read_mem_bind(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    try:
        binding.check_mem_bind(text or "")
    except LangError:
        return error(f'unrecognized --mem-bind argument "{text}"')
    return (("+mem-bind", text),)


def read_cpu_bind(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    try:
        binding.check_cpu_bind(text or "")
    except LangError:
        return error(f'unrecognized --cpu-bind argument "{text}"')
    return (("cpu_bind", text),)


def read_burst_buffer_file(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    return (("+burst-buffer-file", text or ""),)


def read_file(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    return ((option.field, text or ""),)


def read_early(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    """Read in a pass of its own; a directive with it changes nothing, as in Slurm."""
    return ()


READERS: dict[str, Reader] = {
    **containers.READERS,
    "acctg_freq": read_acctg_freq, "begin": plain.read_moment, "bell": plain.read_bell, "burst_buffer_file": read_burst_buffer_file, "chdir": read_file,
    "count": plain.read_count, "count_ntasks_per_node": plain.read_count_ntasks_per_node, "cpu_bind": read_cpu_bind, "cpu_freq": devices.read_cpu_freq,
    "delay": plain.read_delay, "distribution": shape.read_distribution, "early": read_early, "exclude": shape.read_exclude, "exclusive": shape.read_exclusive,
    "external": plain.read_flag, "extra_node_info": shape.read_extra_node_info, "file": read_file, "flag": plain.read_flag, "gid": plain.read_text,
    "gpu_bind": devices.read_gpu_bind, "gpu_fraction": devices.read_gpu_fraction, "gpu_freq": devices.read_gpu_freq, "gpu_memory": devices.read_gpu_memory,
    "gpus": devices.read_gpus, "gpus_per_task": devices.read_gpus_per_task, "gres": devices.read_gres, "gres_flags": devices.read_gres_flags, "hint": shape.read_hint,
    "mail_type": read_mail_type, "mem": plain.read_memory(MemoryPer.NODE), "mem_bind": read_mem_bind,
    "mem_per_cpu": plain.read_memory(MemoryPer.CPU), "mem_per_gpu": plain.read_memory(MemoryPer.GPU), "mem_update": plain.read_mem_update,
    "moment": plain.read_moment, "name": plain.read_text, "names": plain.read_names, "nice": plain.read_nice, "no_bell": plain.read_bell, "no_kill": shape.read_no_kill,
    "no_requeue": read_no_requeue, "nodefile": shape.read_nodefile, "nodelist": shape.read_nodelist, "nodes": shape.read_nodes, "number": plain.read_number,
    "oom_kill_step": plain.read_oom_kill_step, "open_mode": read_open_mode, "preemptible": plain.read_preemptible, "priority": plain.read_priority,
    "profile": read_profile, "propagate": read_propagate, "pty": read_pty, "recorded": plain.read_recorded, "refused": plain.read_refused, "requeue": read_requeue,  "resv_ports": plain.read_resv_ports, "seconds": plain.read_seconds, "segment": plain.read_segment, "signal": read_signal,
    "switches": shape.read_switches, "text": plain.read_text, "time": plain.read_time, "time_min": plain.read_time_min, "tmp": plain.read_tmp,
    "tres_per_task": devices.read_tres_per_task, "uid": plain.read_text, "yes_no": plain.read_yes_no, "zero_one": plain.read_zero_one,
}  # fmt: skip
"""kind of an option -> its reader."""

_TIMED = frozenset({"begin", "moment"})
_NO_CLOCK = Clock(0.0)


@lru_cache(maxsize=8192)
def _read_pure(option_id: tuple[str, str], text: str | None) -> Values | Bad:
    from slurmbridge.submit.options import BY_LONG

    option = BY_LONG[option_id[0]][option_id[1]]
    return READERS[option.kind](option, text, _NO_CLOCK)


def read(command: str, option: Option, text: str | None, clock: Clock) -> Values | Bad:
    """The fields that an option sets. Repeated texts are answered from a bounded memo."""
    if option.kind in _TIMED or (text is not None and len(text) > 512):
        return READERS[option.kind](option, text, clock)
    return _read_pure((command, option.long), text)
