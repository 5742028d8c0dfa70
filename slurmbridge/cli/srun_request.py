"""What does this srun command line ask of a job's supervisor? argv and environment in, a request out.

No I/O but for the file that --multi-prog names. Options come from the generated table `wire.srun_options`; getopt_long's
rules and words as every Slurm command has them. Inside an allocation the options that only shape a new one (partition,
account, begin ...) change nothing, as with Slurm; what is refused is refused in the table's words. Standard library only.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from slurmbridge.errors import LangError
from slurmbridge.lang import hostlist
from slurmbridge.wire.srun_options import BY_LONG, BY_SHORT, OPTIONS, WHOLE

MPI_TYPES = ("none", "pmi2")
DISTRIBUTIONS = ("block", "cyclic", "plane", "*", "")
ALIASES = {"cpu_bind": "cpu-bind", "tasks-per-node": "ntasks-per-node", "pack-group": "het-group"}
_CONTAINER = "a step runs in the container of its job"
NOT_IN_STEPS = {
    **{
        f"container-{name}": _CONTAINER
        for name in ("env", "image", "mount-home", "mounts", "readonly", "workdir", "writable")
    },
    "no-container-mount-home": _CONTAINER,
    "cpus-per-gpu": "CPUs follow tasks inside a job: use --cpus-per-task",
    "gpus-per-socket": "sockets are not told apart inside a job: use --gpus-per-node",
    "gpu-fraction": "a step uses the devices of its job as the job has them",
    "gpu-memory": "a step uses the devices of its job as the job has them",
    "ntasks-per-gpu": "say the number of tasks: use --ntasks",
    "ntasks-per-tres": "say the number of tasks: use --ntasks",
    "interactive": "there is no interactive step",
    "test-only": "there is nothing to test inside a job",
    "wait-for-children": "a task is its first process here",
}
"""Honoured when they ask for an allocation, refused when they are typed inside one. The table's other honoured options
that nothing here reads only shape a new allocation; inside one they have no effect, as with Slurm."""
LONG, SHORT, ARG, ENV, _FIELD, KIND, END, WHY = range(8)


Row = tuple[Any, ...]


class Usage(Exception):
    """srun says no by itself."""

    def __init__(self, *lines: str, code: int = 1, stdout: str = "") -> None:
        super().__init__(lines[0] if lines else "")
        self.lines, self.code, self.stdout = lines, code, stdout


class Command(NamedTuple):
    """A parsed command line: option values by long name (None: flag), and the program with its arguments."""

    options: dict[str, str | None]
    typed: frozenset[str]  # given on the command line, not by the environment
    program: tuple[str, ...]
    verbose: int


def parse(argv: list[str], env: dict[str, str], *, is_new: bool = False) -> Command:
    """argv[0] is srun. `is_new`: its options asked for the allocation too. Usage: what getopt or the table refuses."""
    table: tuple[Row, ...] = OPTIONS
    by_long: dict[str, Row] = BY_LONG
    by_short: dict[str, Row] = BY_SHORT
    options: dict[str, str | None] = {}
    for row in table:
        for name in row[ENV]:
            if name in env:
                _take(options, row, env[name], from_env=True)
    typed: set[str] = set()
    verbose = 0
    index = 1
    while index < len(argv):
        word = argv[index]
        if word == "--":
            index += 1
            break
        if not word.startswith("-") or word == "-":
            break
        index += 1
        for row, value in _words(word, by_long, by_short):
            if row[ARG] == "required" and value is None:
                if index >= len(argv):
                    what = f"option '--{row[LONG]}' requires" if word.startswith("--") else "option requires"
                    tail = "" if word.startswith("--") else f" -- '{row[SHORT]}'"
                    raise _getopt(f"{what} an argument{tail}")
                value = argv[index]
                index += 1
            why = row[WHY] if row[END] == "refused" else None if is_new else NOT_IN_STEPS.get(row[LONG])
            if why:
                raise Usage(f"srun: error: --{row[LONG]}: {why}")
            verbose += row[LONG] == "verbose"
            typed.add(_name(row))
            _take(options, row, value, from_env=False)
    program = tuple(argv[index:])
    return Command(options, frozenset(typed), program, verbose)


def _words(word: str, by_long: dict[str, Row], by_short: dict[str, Row]) -> list[tuple[Row, str | None]]:
    """The options of one word; a value of None may still follow in the next."""
    if word.startswith("--"):
        name, equals, value = word[2:].partition("=")
        row = by_long.get(name)
        if row is None:
            matches = [each for long, each in by_long.items() if long.startswith(name) and long not in WHOLE]
            if not matches:
                raise _getopt(f"unrecognized option '{word}'")
            if len({each[KIND] for each in matches}) > 1 or len({each[SHORT] for each in matches}) > 1:
                names = " ".join(f"'--{each[LONG]}'" for each in matches)
                raise _getopt(f"option '{word}' is ambiguous; possibilities: {names}")
            row = matches[0]
        if row[ARG] == "none" and equals:
            raise _getopt(f"option '--{row[LONG]}' doesn't allow an argument")
        return [(row, value if equals else None)]
    found: list[tuple[Row, str | None]] = []
    for place in range(1, len(word)):
        row = by_short.get(word[place])
        if row is None:
            raise _getopt(f"invalid option -- '{word[place]}'")
        if row[ARG] == "none":
            found.append((row, None))
            continue
        found.append((row, word[place + 1 :] or None))
        break
    return found


def _getopt(problem: str) -> Usage:
    return Usage(f"srun: {problem}", 'Try "srun --help" for more information', code=255)


def _name(row: Row) -> str:
    """The one name that an option and its other spellings are kept under."""
    long: str = row[LONG]
    return ALIASES.get(long, long)


def _take(options: dict[str, str | None], row: Row, value: str | None, *, from_env: bool) -> None:
    name = _name(row)
    if from_env and row[END] == "refused" and value not in ("", "no", "0", "none"):
        raise Usage(f"srun: error: {row[ENV][0]}: {row[WHY]}")
    if from_env and row[ARG] == "none" and value in ("no", "false", "0"):
        return
    options[name] = value


def number(options: dict[str, str | None], name: str, *, least: int = 1) -> int | None:
    """A count; Usage in Slurm's words when it is none."""
    text = options.get(name)
    if text is None:
        return None
    if not re.fullmatch(r"\+?[0-9]+", text.strip()) or int(text) < least:
        raise Usage(f'srun: error: Invalid numeric value "{text}" for --{name}.')
    return int(text)


def build(command: Command, env: dict[str, str], cwd: str, umask: int) -> dict[str, Any]:
    """The request, all but the environment (`environment`)."""
    options = command.options
    if not command.program:
        raise Usage("srun: fatal: No command given to execute.")
    mpi = (options.get("mpi") or "none").lower()
    if mpi not in MPI_TYPES:
        raise Usage(
            f"srun: error: MPI: Cannot create context for mpi/{mpi}",
            "srun: error: MPI: Unable to load any plugin",
            f"srun: error: Invalid MPI type '{mpi}', --mpi=list for acceptable types",
        )
    distribution = options.get("distribution") or ""
    first = distribution.lower().split(":")[0].split(",")[0].partition("=")[0]
    if first not in DISTRIBUTIONS:
        raise Usage(
            f"srun: error: --distribution={distribution}: only block, cyclic and plane=N place tasks inside a job"
        )
    plane = re.match(r"plane=(\d+)", distribution)
    cpus = number(options, "cpus-per-task") if "cpus-per-task" in command.typed else None
    exclusive = "exclusive" in command.typed
    nodes = _nodes(options.get("nodes"), command, env)
    request: dict[str, Any] = {
        "argv": list(command.program),
        "cwd": options.get("chdir") or cwd,
        "umask": umask,
        "name": options.get("job-name") if "job-name" in command.typed else None,
        "nodes": nodes,
        "nodes_from": "option" if "nodes" in command.typed else "SLURM_JOB_NUM_NODES",
        "ntasks": number(options, "ntasks"),
        "cpus_per_task": cpus or number(options, "cpus-per-task"),
        "per_node": number(options, "ntasks-per-node"),
        "nodelist": _hosts(options.get("nodelist")),
        "exclude": _hosts(options.get("exclude")),
        "relative": number(options, "relative", least=0),
        "distribution": "plane" if plane else first.replace("*", ""),
        "plane": int(plane.group(1)) if plane else 0,
        "exact": "exact" in options or exclusive or cpus is not None,
        "overlap": "overlap" in options,
        "external": "external-launcher" in options,
        "overcommit": "overcommit" in options,
        "immediate": "immediate" in options,
        "mpi": mpi,
        "preserve_env": "preserve-env" in options,
        "gpu_bind": options.get("gpu-bind"),
        "append": (options.get("open-mode") or "").startswith("a"),
        "task_prolog": options.get("task-prolog"),
        "task_epilog": options.get("task-epilog"),
    }
    if "pack" in distribution.lower() and "nopack" not in distribution.lower():
        request["distribution"] += ",pack"
    limit = options.get("time")
    if limit is not None:
        request["limit"] = _seconds(limit)
    for name, key in (("mem", "memory"), ("mem-per-cpu", "memory_per_cpu")):
        text = options.get(name)
        if text is not None and name in command.typed:
            request[key] = _mib(text, name)
    request.update(_gpus(options))
    return {name: value for name, value in request.items() if value not in (None, "", [], False)}


def _seconds(text: str) -> int:
    """--time: minutes, m:s, h:m:s, d-h, d-h:m, d-h:m:s; 0 = no limit. Seconds round up to the minute."""
    word = text.strip().lower()
    if word in ("0", "-1", "infinite", "unlimited"):
        return 0
    match = re.fullmatch(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?", word)
    if not match:
        raise Usage("srun: error: Invalid --time specification")
    days, *fields = [int(each) if each is not None else None for each in match.groups()]
    given = [field for field in fields if field is not None]
    if days is not None:
        hours, minutes, seconds = [*given, 0, 0][:3]
        total = days * 86400 + hours * 3600 + minutes * 60 + seconds
    elif len(given) == 1:
        total = given[0] * 60
    elif len(given) == 2:
        total = given[0] * 60 + given[1]
    else:
        total = given[0] * 3600 + given[1] * 60 + given[2]
    return -(-total // 60) * 60


def _mib(text: str, name: str) -> int:
    """--mem: MiB without a letter; K rounds up."""
    match = re.fullmatch(r"(\d+)([kmgt]?)b?", text.strip().lower())
    if not match:
        raise Usage(f"srun: error: Invalid --{name} specification")
    count = int(match.group(1))
    return {"k": -(-count // 1024), "": count, "m": count, "g": count << 10, "t": count << 20}[match.group(2)]


def _nodes(text: str | None, command: Command, env: dict[str, str]) -> int | None:
    source = text if text is not None else env.get("SLURM_NNODES")
    if not source:
        return None
    least = source.split("-")[0].split(",")[0].strip()
    if not least.isdecimal() or int(least) == 0:
        raise Usage(f'srun: error: "{source}" is not a valid node count', code=255)
    return int(least)


def _hosts(text: str | None) -> list[str] | None:
    if not text:
        return None
    try:
        return hostlist.expand(text)
    except LangError as error:
        raise Usage(f"srun: error: {error.message}") from error


def _gpus(options: dict[str, str | None]) -> dict[str, int]:
    """GPUs that the step asks for, per node or per task; nothing asked: all of the job."""
    found: dict[str, int] = {}
    for name, key in (("gres", "gpus_per_node"), ("gpus-per-node", "gpus_per_node"), ("gpus-per-task", "gpus_per_task"),
                      ("gpus", "gpus")):  # fmt: skip
        text = options.get(name)
        if text is None:
            continue
        if text.lower() == "none":
            found["gpus_per_node"] = 0
            continue
        count = 0
        for term in text.split(","):
            words = term.split(":")
            if name == "gres" and words[0] != "gpu":
                continue
            last = words[-1].partition("(")[0]
            count += int(last) if last.isdecimal() else 1
        found[key] = count
    per_task = re.findall(r"(?:gres[/:])?gpu(?::[^=:,]+)?[=:](\d+)", options.get("tres-per-task") or "")
    if per_task and "gpus_per_task" not in found:
        found["gpus_per_task"] = sum(int(count) for count in per_task)
    return found


def environment(command: Command, env: dict[str, str], request: dict[str, Any]) -> dict[str, str]:
    """What the tasks get of srun's own environment (--export), and what srun itself adds."""
    export = command.options.get("export")
    words = export.split(",") if export is not None else ["ALL"]
    names = {word.strip().upper() for word in words if "=" not in word}
    if "ALL" in names:
        sent = dict(env)
    elif "NIL" in names:
        sent = {}
    else:
        sent = {name: value for name, value in env.items() if name.startswith("SLURM") or name in words}
    for word in words:
        name, equals, value = word.partition("=")
        if equals and name.strip():
            sent[name.strip()] = value
    if export is not None:
        sent["SLURM_EXPORT_ENV"] = export
    options = command.options
    if "label" in options:
        sent["SLURM_LABELIO"] = "1"
    if "overcommit" in options:
        sent["SLURM_OVERCOMMIT"] = "1"
    if request.get("cpus_per_task"):
        sent["SLURM_CPUS_PER_TASK"] = str(request["cpus_per_task"])
        if "cpus-per-task" in command.typed:
            sent["SLURM_TRES_PER_TASK"] = f"cpu={request['cpus_per_task']}"
    if request.get("plane"):
        sent["SLURM_DIST_PLANESIZE"] = str(request["plane"])
    if "ntasks-per-node" in command.typed:
        sent["SLURM_NTASKS_PER_NODE"] = str(request["per_node"])
    if "mpi" in options:
        sent["SLURM_MPI_TYPE"] = str(request["mpi"])
    if request.get("name"):
        sent["SLURM_JOB_NAME"] = str(request["name"])
    else:
        sent.setdefault("SLURM_JOB_NAME", command.program[0].rsplit("/", 1)[-1])
    bind = options.get("cpu-bind")
    if bind is not None and "cpu-bind" in command.typed:
        kind = bind.split(",")[-1]
        mode = "verbose" if bind.lower().startswith("v") else "quiet"
        kind = "" if kind.lower() in ("q", "quiet", "v", "verbose") else kind
        sent["SLURM_CPU_BIND"] = ",".join(word for word in (mode, kind) if word)
        sent["SLURM_CPU_BIND_VERBOSE"], sent["SLURM_CPU_BIND_TYPE"], sent["SLURM_CPU_BIND_LIST"] = mode, kind, ""
    return sent


def programs(name: str, tasks: list[int]) -> list[list[str]]:
    """The argv of each task, from a --multi-prog file. Usage: it cannot be read."""
    try:
        with open(name, encoding="utf-8", errors="surrogateescape") as file:
            text = file.read()
    except OSError as error:
        raise Usage(f"srun: error: Could not open configuration file {name}: {error.strerror}") from error
    found = read_programs(text, name, tasks)
    return [found[task] for task in tasks]


def read_programs(text: str, name: str, tasks: list[int]) -> dict[int, list[str]]:
    """A --multi-prog file: the argv of each task. Usage when a task has none."""
    import shlex

    found: dict[int, list[str]] = {}
    rest: list[str] | None = None
    for line in text.splitlines():
        try:
            words = shlex.split(line, comments=True)
        except ValueError as error:
            raise Usage(f"srun: error: Configuration file {name} invalid: {error}") from error
        if not words:
            continue
        if len(words) < 2:
            raise Usage(f"srun: error: Configuration file {name} invalid, no program in line: {line}")
        if words[0] == "*":
            rest = words[1:]
            continue
        try:
            ids = [int(each) for each in hostlist.expand(f"[{words[0]}]")]
        except (LangError, ValueError):
            raise Usage(f"srun: error: Configuration file {name} invalid, bad task list {words[0]}") from None
        for offset, task in enumerate(ids):
            found.setdefault(task, _filled(words[1:], task, offset))
    missing = [task for task in tasks if task not in found]
    if rest is not None:
        for offset, task in enumerate(missing):
            found[task] = _filled(rest, task, offset)
    elif missing:
        raise Usage(f"srun: error: Configuration file {name} invalid, no record for task id {missing[0]}")
    return {task: found[task] for task in tasks}


def _filled(words: list[str], task: int, offset: int) -> list[str]:
    return [word.replace("%t", str(task)).replace("%o", str(offset)) for word in words]
