"""Batch scripts in every form that users write, from a seed: the same seed gives the same scripts.

Shares of directives and of their forms follow a count over several hundred public scripts; the values fit a site with the
partitions debug, gpu, long, small, restricted and maint. A few in a hundred are meant to be refused.
"""

from __future__ import annotations

import dataclasses
import random
import shlex
from collections.abc import Callable, Sequence

Pick = Callable[[random.Random], str]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Case:
    """A script and the shell line that submits it."""

    name: str
    script: str
    line: str


def _of(*texts: str) -> Pick:
    return lambda rng: rng.choice(texts)


def _number(low: int, high: int) -> Pick:
    return lambda rng: str(rng.randint(low, high))


TIMES = _of("10:00", "0-00:05", "1-0:0:0", "024:00:00", "00:1:00", "5", "90", "120:30", "2-12", "2-12:30", "01:00:00",
            "00:00:30", "0:0:1", "UNLIMITED", "infinite", "-1", "1-00:00:00", "7-00", "48:00:00", "00:59:59", "3:")  # fmt: skip
SIZES = _of("16gb", "440MB", "432m", "2G", "4000", "1024K", "8g", "0", "100M", "12GB", "1T", "1.5G", "500k", "15000")
ARRAYS = _of("0-9", "[0-9]", "500-17000:1000%26", "1-3", "1,3,5", "1-4%2", "0-15:4", "7", "1-10%0", "1,2-5:2,9", "0",
             "20000", "20001", "5-1", "1-", "a-b", "0-20000%100", "1-3,2-4", "%4", "01-05")  # fmt: skip
MAILS = _of("END", "end,fail", "ALL", "BEGIN,END,FAIL", "REQUE", "requeue", "NONE", "TIME_LIMIT_80", "TIME_LIMIT,INVALID_DEPEND",
            "STAGE_OUT", "ARRAY_TASKS,FAIL", "none,END", "begin", "ALL,ARRAY_TASKS", "ABORT", "time_limit_50,TIME_LIMIT_90")  # fmt: skip
PATHS = _of("slurm-%j.out", "logs/%x-%j.out", "%A_%a.log", "%x.%j", "/tmp/%u-%j.out", "out.txt", "job.%J.out", "%5j.out", "run_%N.log", "/dev/null", "a b.out", "%%j.txt")  # fmt: skip
NAMES = _of(
    "test", "my_job", "a-long-name-of-a-job-that-goes-on", "x", "job.1", "Näme", "1234", "with space", "rna_seq#2"
)

# long name, short letter (or none), weight in percent, values (None: no argument)
# fmt: off
OPTIONS: tuple[tuple[str, str, float, Pick | None], ...] = (
    ("time", "t", 83, TIMES),
    ("job-name", "J", 79, NAMES),
    ("nodes", "N", 60, _of("1", "1", "2", "2", "4", "1-2", "2-4", "3", "0", "1-1", "5", "2,4", "x", "1k")),
    ("partition", "p", 50, _of("debug", "debug", "gpu", "gpu", "long", "small", "debug,long", "restricted", "maint", "nowhere")),
    ("output", "o", 54, PATHS),
    ("cpus-per-task", "c", 45, _of("1", "2", "4", "8", "16", "3", "0", "9", "2k")),
    ("ntasks", "n", 41, _of("1", "2", "4", "8", "16", "32", "3", "0", "1k", "x")),
    ("ntasks-per-node", "", 30, _of("1", "2", "4", "8", "16", "0")),
    ("account", "A", 20, _of("physics", "ml", "PHYSICS", "admin", "nobody", "physics")),
    ("error", "e", 30, PATHS),
    ("mem", "", 29, SIZES),
    ("mail-type", "", 21, MAILS),
    ("qos", "q", 15, _of("normal", "high", "long", "tiny", "preempt", "none-such")),
    ("mail-user", "", 20, _of("alice@site.org", "bob", "a@b,c@d", "")),
    ("gres", "", 12, _of("gpu:1", "gpu:2", "gpu:a100:1", "gpu", "gpu:a100:4", "gpu:v100:1", "gpu:8", "none", "gpu:0", "fpga:1")),
    ("mem-per-cpu", "", 12, _of("100", "200M", "1G", "4gb", "0", "2000MB")),
    ("exclusive", "", 9, None),
    ("exclusive", "", 4, _of("user", "mcs", "topo", "exclusive", "nobody")),
    ("hint", "", 8, _of("nomultithread", "compute_bound", "memory_bound", "multithread", "odd")),
    ("array", "a", 8, ARRAYS),
    ("gpus", "G", 6, _of("1", "2", "a100:2", "gpu:1", "8", "0", "a100:1,v100:1")),
    ("gpus-per-node", "", 6, _of("1", "a100:2", "4", "5", "a100:1")),
    ("constraint", "C", 6, _of("cpu", "avx2", "avx2&rack1", "rack1|rack2", "[a|b]", "[rack1|rack2]", "[cpu*2]", "gpu", "avx512", "cpu,avx2", "(cpu&avx2)|gpu", "&cpu")),
    ("reservation", "", 2, _of("none-such", "a,b")),
    ("export", "", 5, _of("ALL", "NONE", "NIL", "ALL,X=1", "HOME,PATH", "X=1,Y='a,b'", "none")),
    ("tasks-per-node", "", 4, _of("1", "2", "4")),
    ("wait-all-nodes", "", 3, _of("0", "1", "2", "yes")),
    ("exclude", "x", 3, _of("n1", "n[1-2]", "n9", "n1,n3", "g1")),
    ("nodelist", "w", 3, _of("n1", "n[1-2]", "n[2,4]", "n9", "n3,n1", "g[1-2]")),
    ("ntasks-per-core", "", 2, _of("1", "2")),
    ("distribution", "m", 3, _of("block", "cyclic", "block:cyclic", "plane=4", "arbitrary", "block:block:fcyclic", "cyclic:*,Pack", "*:cyclic", "odd")),
    ("open-mode", "", 3, _of("append", "truncate", "a", "t", "w")),
    ("licenses", "L", 3, _of("matlab:2", "matlab", "ansys:1,matlab:1", "none:1", "matlab:20", "matlab:1|ansys:1")),
    ("ntasks-per-socket", "", 2, _of("1", "2", "4")),
    ("dependency", "d", 3, _of("singleton", "afterok:999999", "afterany:1?afterok:2", "after:x", "afterok", "afterok:1,afterany:2?singleton", "expand:1")),
    ("signal", "", 3, _of("USR1@60", "B:USR2@30", "TERM", "R:10@5", "B:15", "NOSIG", "SIGUSR1@120", "BR:USR1", "99@1", "USR1@70000")),
    ("gpus-per-task", "", 2, _of("1", "a100:1", "2")),
    ("requeue", "", 2, None),
    ("no-requeue", "", 2, None),
    ("wckey", "", 2, _of("key", "*")),
    ("gpu-bind", "", 1.5, _of("closest", "map_gpu:0,1", "single:2", "none", "mask_gpu:0x3", "per_task:1", "odd", "verbose,closest")),
    ("cpu-freq", "", 1.5, _of("high", "2000000", "low-high:performance", "medium", "odd", "Performance")),
    ("cpus-per-gpu", "", 2, _of("1", "4")),
    ("mem-per-gpu", "", 2, _of("1G", "2000")),
    ("overcommit", "O", 2, None),
    ("oversubscribe", "s", 2, None),
    ("propagate", "", 1.5, _of("ALL", "NONE", "STACK,NOFILE", "ODD")),
    ("switches", "", 2, _of("1", "2@1:00:00", "1@5", "x", "1@x")),
    ("ntasks-per-gpu", "", 2, _of("1", "2")),
    ("begin", "b", 3, _of("now+1hour", "2031-01-20T12:30:00", "now+60", "now+2days", "1/20/31", "010131", "now+3weeks", "never")),
    ("deadline", "", 2, _of("now+2days", "2031-01-20", "now+1week")),
    ("chdir", "D", 3, _of("/tmp", "sub/dir", "..")),
    ("comment", "", 3, _of("a comment", "x=1", "'quoted'")),
    ("nice", "", 2, _of("100", "-5", "0", "99999999999")),
    ("nice", "", 1, None),
    ("priority", "", 1, _of("100", "TOP", "x")),
    ("hold", "H", 2, None),
    ("immediate", "I", 0.3, None),
    ("time-min", "", 2, _of("1", "00:05:00", "10-0")),
    ("tmp", "", 2, _of("100", "1G", "5G", "x")),
    ("mincpus", "", 2, _of("2", "4", "64")),
    ("contiguous", "", 1.5, None),
    ("spread-job", "", 1.5, None),
    ("use-min-nodes", "", 1.5, None),
    ("no-kill", "k", 1, None),
    ("no-kill", "", 1, _of("off", "on")),
    ("kill-on-invalid-dep", "", 1.5, _of("yes", "no", "maybe")),
    ("core-spec", "S", 1, _of("1", "2")),
    ("thread-spec", "", 1, _of("1")),
    ("threads-per-core", "", 1, _of("1", "2")),
    ("cores-per-socket", "", 1.5, _of("2", "4", "16")),
    ("sockets-per-node", "", 1.5, _of("1", "2", "4")),
    ("extra-node-info", "B", 1.5, _of("1:2", "2:4:1", "*:2", "x", "2-2:4")),
    ("input", "i", 1.5, _of("/dev/zero", "in.%j", "none")),
    ("get-user-env", "", 1, None),
    ("profile", "", 1, _of("none", "task", "all", "energy,task", "odd")),
    ("acctg-freq", "", 1.5, _of("30", "task=30", "task=30,energy=60", "0", "odd=1", "task=x")),
    ("tres-per-task", "", 1.5, _of("cpu=2", "gres/gpu=1", "cpu:2", "gres:gpu:1", "license/matlab:1", "cpu")),
    ("mem-bind", "", 1, _of("local", "none", "map_mem:0,1", "prefer,local", "odd")),
    ("clusters", "M", 0.7, _of("oracle")),
    ("cluster-constraint", "", 0.7, _of("a", "!a", "a,b")),
    ("delay-boot", "", 1, _of("10", "5:00", "x")),
    ("ignore-pbs", "", 1, None),
    ("parsable", "", 1, None),
    ("quiet", "Q", 1, None),
    ("verbose", "v", 0.5, None),
    ("reboot", "", 0.5, None),
    ("power", "", 0.5, _of("level")),
    ("bb", "", 0.5, _of("capacity=10G")),
    ("container", "", 0.3, _of("/oci/bundle")),
    ("network", "", 0.7, _of("ib", "sn_all")),
    ("oom-kill-step", "", 1, _of("1", "0")),
    ("oom-kill-step", "", 0.5, None),
    ("resv-ports", "", 0.3, _of("2")),
    ("segment", "", 0.5, _of("2")),
    ("stepmgr", "", 0.5, None),
    ("uid", "", 0.3, _of("bob")),
    ("admin-comment", "", 0.3, _of("x")),
    ("no-such-option", "", 0.7, _of("1")),
)
# fmt: on
VARIABLES: tuple[tuple[str, Pick], ...] = (
    ("SBATCH_TIMELIMIT", TIMES),
    ("SBATCH_PARTITION", _of("debug", "long")),
    ("SBATCH_ACCOUNT", _of("ml")),
    ("SBATCH_QOS", _of("high", "")),
    ("SBATCH_ARRAY_INX", _of("1-2", "bad")),
    ("SBATCH_EXCLUSIVE", _of("", "user")),
    ("SBATCH_MEM_PER_NODE", SIZES),
    ("SBATCH_JOB_NAME", NAMES),
    ("SBATCH_GRES", _of("gpu:1")),
    ("SBATCH_HINT", _of("compute_bound")),
    ("SBATCH_EXPORT", _of("NONE", "X=1")),
    ("SBATCH_REQUEUE", _of("", "1")),
    ("SBATCH_NO_REQUEUE", _of("")),
    ("SBATCH_COMMENT", _of("from outside")),
    ("SBATCH_OPEN_MODE", _of("append", "x")),
    ("SBATCH_CONSTRAINT", _of("cpu")),
    ("SBATCH_OVERCOMMIT", _of("")),
    ("SBATCH_WCKEY", _of("k")),
    ("SBATCH_SIGNAL", _of("USR1@9")),
    ("SBATCH_OUTPUT", PATHS),
    ("SBATCH_ERROR", PATHS),
    ("SBATCH_INPUT", _of("/dev/zero")),
    ("SBATCH_DISTRIBUTION", _of("cyclic")),
    ("SBATCH_CPUS_PER_TASK", _of("2")),
    ("SBATCH_IGNORE_PBS", _of("")),
    ("SBATCH_SPREAD_JOB", _of("")),
)  # fmt: skip
# Drawn seldom, so that most scripts are accepted and their jobs can be compared.
ODD = frozenset(
    "x odd 1k 2k none-such a,b nowhere restricted maint nobody admin 5 0 9 32 2,4 1T 20001 5-1 1- a-b %4 1-3,2-4 gpu:v100:1 gpu:8 "
    "fpga:1 8 a100:1,v100:1 [a|b] &cpu gpu cpu,avx2 (cpu&avx2)|gpu none n9 g1 g[1-2] w yes none:1 matlab:20 afterok:999999 after:x "
    "afterok afterok:1,afterany:2?singleton afterany:1?afterok:2 expand:1 NOSIG 99@1 USR1@70000 * never TOP 99999999999 maybe 64 2-2:4 1@x ODD license/matlab:1 cpu".split()
)  # fmt: skip
FIRST = ("#!/bin/bash",) * 12 + (
    "#!/bin/sh",
    "#!/usr/bin/env bash",
    "#!/bin/bash -l",
    "#!/bin/bash --login",
    "#! /bin/bash",
)
BODIES = (
    "module load gcc\nsrun ./app\n", "cd $SLURM_SUBMIT_DIR\npython run.py --n $SLURM_CPUS_PER_TASK\n",
    "echo start\n#SBATCH --time=99 --nodes=77\nsrun hostname\n", "cat <<X\n#SBATCH -N9\nX\n", "mpirun -n $SLURM_NTASKS ./app &\nwait\n",
    "hostname", "",
)  # fmt: skip


def _quoted(rng: random.Random, value: str) -> str:
    if any(letter in value for letter in " #'\"\\") or not value:
        return f'"{value}"' if '"' not in value else shlex.quote(value)
    return rng.choice([value] * 8 + [f'"{value}"', f"'{value}'"])


def _option(rng: random.Random, long: str, short: str, value: str | None) -> str:
    """One option in one of its spellings."""
    name = long
    if rng.random() < 0.04 and len(long) > 4:
        name = long[: rng.randint(3, len(long) - 1)]
    if value is None:
        return f"-{short}" if short and rng.random() < 0.3 else f"--{name}"
    text = _quoted(rng, value)
    if short and rng.random() < 0.35:
        return f"-{short}" + rng.choice(["", " ", " ", "  "]) + text
    return f"--{name}" + rng.choice(["=", "=", "=", "=", " ", "   "]) + text


def _lines(rng: random.Random, options: Sequence[str]) -> list[str]:
    """Directives with what stands between and behind them in real scripts."""
    lines: list[str] = []
    waiting = list(options)
    while waiting:
        text = waiting.pop(0)
        while waiting and rng.random() < 0.06:
            text += " " + waiting.pop(0)
        if rng.random() < 0.12:
            text += rng.choice([" # a remark", "  ### of interest", "\t# tab", " #glued", " #"])
        lines.append(
            rng.choice(["#SBATCH "] * 12 + ["#SBATCH  ", "#SBATCH\t"]) + text + rng.choice([""] * 8 + [" ", "\t"])
        )
        extra = rng.random()
        if extra < 0.06:
            lines.append(
                rng.choice(
                    [
                        "##SBATCH --nodes=88",
                        "# SBATCH -N 88",
                        "#SBATCH",
                        "#sbatch -N88",
                        "",
                        "# plain remark",
                        "#SBATCHX -N9",
                        "#",
                    ]
                )
            )
        elif extra < 0.07:
            lines.append(rng.choice(["#PBS -l walltime=3:00", "#BSUB -W 3", "#BRIDGE", " #SBATCH -N88"]))
        elif extra < 0.075:
            lines.append(rng.choice(["#SBATCH --job-name=$USER", "#SBATCH stray", "#SBATCH --output=$HOME/x"]))
    return lines


def _value(rng: random.Random, pick: Pick) -> str:
    value = pick(rng)
    while value in ODD and rng.random() < 0.85:
        value = pick(rng)
    return value


def _chosen(rng: random.Random, factor: float) -> list[str]:
    made = []
    for long, short, weight, pick in OPTIONS:
        if rng.random() * 100 < weight * factor:
            made.append(_option(rng, long, short, _value(rng, pick) if pick else None))
            if rng.random() < 0.02:
                made.append(_option(rng, long, short, _value(rng, pick) if pick else None))
    rng.shuffle(made)
    return made


def _case(rng: random.Random, name: str) -> Case:
    options = _chosen(rng, rng.choice([0.3, 0.6, 0.6, 1.0]))
    lines = [rng.choice(FIRST), *_lines(rng, options)]
    odd = rng.random()
    if odd < 0.02:
        lines.append("#SBATCH hetjob")
        lines += _lines(rng, _chosen(rng, 0.3))
    elif odd < 0.03:
        lines[0] = rng.choice(["", "echo no interpreter", "#SBATCH -N1", "# !/bin/bash"])
    text = "\n".join(lines) + "\n" + rng.choice(["", "\n"]) + rng.choice(BODIES)
    if rng.random() < 0.01:
        text = text.replace("\n", "\r\n")
    words = ["sbatch", "--hold"]
    if rng.random() < 0.2:
        words += [word for option in _chosen(rng, 0.08) for word in shlex.split(option)]
    prefix = ""
    if rng.random() < 0.15:
        prefix = (
            " ".join(
                f"{variable}={shlex.quote(pick(rng))}" for variable, pick in rng.sample(VARIABLES, rng.randint(1, 2))
            )
            + " "
        )
    tail = f"{name}.sh" if rng.random() < 0.92 else f"< {name}.sh"
    if tail.endswith(".sh") and not tail.startswith("<") and rng.random() < 0.1:
        tail += " first 'second word'"
    line = prefix + " ".join(map(shlex.quote, words)) + " " + tail
    return Case(name=name, script=text, line=line)


def generate(seed: int, count: int) -> list[Case]:
    """Every case has a random source of its own, so that one more option somewhere leaves the others as they are."""
    return [_case(random.Random(f"{seed}/{number}"), f"c{number:04d}") for number in range(count)]
