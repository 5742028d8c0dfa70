"""Command lines by the thousand: variations of what users type, with the queue and the accounts that they look at.

`python lines.py PART` prints the steps of a part (submit, queue, accounting) as JSON lines. A step with `id` is a line
whose answer is compared: `argv` or `sh`, and where they matter `user`, `env`, `files` and `stdin`; {J:name} stands for
the job that an earlier step kept under that name. A step with `run`, `wait_job` or `sleep` sets something up.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import odd_scripts
import wordlists

Step = dict[str, Any]


def _slug(words: Iterable[str]) -> str:
    return "_".join(words).replace("=", "_").replace(" ", "_").replace("/", "_")


def _row(family: str, argv: Iterable[str], group: str, **more: Any) -> Step:
    argv = list(argv)
    return {"id": f"{family}.{_slug(argv[1:])}", "group": group, "argv": argv, **more}


def _sbatch(family: str, *options: str, **more: Any) -> Step:
    row = _row(family, ["sbatch", "-H", *options, "--wrap", "hostname"], "submit", **more)
    return {**row, "id": f"{family}.{_slug(options)}" + ("".join(f"@{k}={v}" for k, v in more.get("env", {}).items()))}


def submissions() -> Iterator[Step]:
    yield {"id": "baseline", "group": "submit", "argv": ["sbatch", "-H", "--wrap", "hostname"], "baseline": True}
    yield {"run": ["sbatch", "-H", "-J", "base", "--wrap", "hostname"], "keep": "dep"}
    yield {"run": ["sbatch", "-H", "-a", "0-3", "-J", "basearr", "--wrap", "hostname"], "keep": "deparr"}
    for family, lines in wordlists.SUBMISSIONS.items():
        for line in lines:
            yield _sbatch(family, *line)
    for name, values in wordlists.SBATCH_VARIABLES.items():
        for value in values:
            where = wordlists.GPU if "GPU" in name or "gpu" in value else ()
            yield _sbatch("env", *where, env={name: value})
    for name, body in odd_scripts.SCRIPTS.items():
        yield {"id": f"script.{name}", "group": "submit", "argv": ["sbatch", "-H", "job.sh"], "files": {"job.sh": body}}
    for number, step in enumerate(wordlists.SHELL_SUBMISSIONS):
        yield {"id": f"shell.{number}", "group": "submit", **step}
    for verb in ("hostnames", "hostlist", "hostlistsorted"):
        for text in wordlists.lines("host_lists"):
            yield _row("hosts", ["scontrol", "show", verb, text], "query")
    yield {"run": ["scancel", "{J:dep}", "{J:deparr}"], "user": "root"}


def steps() -> Iterator[Step]:
    for number, step in enumerate(wordlists.STEPS):
        row = {"id": f"srun.{number}", "group": "step", "timeout": 20, **step}
        yield row
        yield {
            "run": [
                "bash",
                "-c",
                'scancel --me -t PD; scancel --me -t R; for i in {1..40}; do [ -z "$(squeue -h --me)" ] && break; sleep 0.1; done',
            ]
        }


QUEUE: tuple[Step, ...] = (
    {"id": "q.run", "argv": ["sbatch", "-J", "runner", "-N1", "-n2", "-w", "n1", "-t", "30", "--mem=200", "--comment=c1", "--wrap", "srun sleep 900"], "keep": "run"},
    {"wait_job": "run", "states": ["RUNNING"]},
    {"sleep": 2},
    {"id": "q.full", "argv": ["sbatch", "-J", "filler", "-N4", "-n24", "-t", "60", "--mem=15000", "--exclude=", "--wrap", "sleep 900"], "keep": "full"},
    {"id": "q.held", "argv": ["sbatch", "-J", "held", "-H", "-N2-3", "-n4", "-p", "debug,long", "-t", "1-2:03:04", "-C", "avx2", "-L", "matlab:2", "--nice=10", "-d", "afterok:{J:run}", "--mail-type=END", "-A", "ml", "-q", "high", "--wrap", "hostname"], "keep": "held"},
    {"id": "q.begin", "argv": ["sbatch", "-J", "later", "--begin=2030-01-20T12:00:00", "--wrap", "hostname"], "keep": "begin"},
    {"id": "q.array", "argv": ["sbatch", "-J", "arr", "-a", "0-9%3", "-w", "n2", "-n8", "--wrap", "sleep 900"], "keep": "arr"},
    {"sleep": 2},
    {"id": "q.arrheld", "argv": ["sbatch", "-J", "arrheld", "-H", "-a", "1,3,5-20:5", "--wrap", "hostname"], "keep": "arrheld"},
    {"id": "q.bob", "user": "bob", "argv": ["sbatch", "-H", "-J", "bobjob", "-t", "2-0", "--wrap", "hostname"], "keep": "bob"},
    {"id": "q.gpu", "argv": ["sbatch", "-J", "gpujob", "-p", "gpu", "--gpus=2", "-t", "45", "--wrap", "sleep 900"], "keep": "gpu"},
    {"wait_job": "gpu", "states": ["RUNNING"]},
    {"sleep": 1},
    {"id": "q.req", "argv": ["sbatch", "-J", "need", "-p", "long", "-n8", "-N1", "--dependency=singleton", "--wrap", "hostname"], "keep": "need"},
    {"id": "q.het", "argv": ["sbatch", "-H", "-J", "hetq", "-n1", ":", "-n2", "--wrap", "hostname"], "keep": "hetq"},
    {"sleep": 3},
)  # fmt: skip


def queue() -> Iterator[Step]:
    for step in QUEUE:
        yield {"group": "submit", "effect": False, **step} if "id" in step else step
    jobs = "{J:run},{J:held},{J:arr}"
    others = "{J:gpu},{J:bob},{J:arrheld},{J:begin},{J:need},{J:hetq}"
    for letter in wordlists.lines("squeue_letters"):
        yield _row("squeue.o", ["squeue", "-j", jobs, "-o", f"%{letter}"], "query")
        yield _row("squeue.o", ["squeue", "-j", others, "-o", f"%.20{letter}|"], "query")
        yield _row("squeue.so", ["squeue", "-s", "{J:run}.0,{J:run}.batch", "-o", f"%{letter}"], "query")
    for name in wordlists.lines("squeue_fields"):
        yield _row("squeue.O", ["squeue", "-j", jobs, "-O", f"{name}:40"], "query")
        yield _row("squeue.O", ["squeue", "-j", others, "-O", f"{name}:.30"], "query")
    for name in wordlists.lines("squeue_step_fields"):
        yield _row("squeue.sO", ["squeue", "-s", "{J:run}.0,{J:run}.batch", "-O", f"{name}:40"], "query")
    for letter in wordlists.lines("sinfo_letters"):
        yield _row("sinfo.o", ["sinfo", "-p", "debug,gpu", "-o", f"%{letter}"], "query")
        yield _row("sinfo.o", ["sinfo", "-o", f"%.15{letter}|%N"], "query")
    for name in wordlists.lines("sinfo_fields"):
        yield _row("sinfo.O", ["sinfo", "-p", "debug,gpu", "-O", f"{name}:40"], "query")
        yield _row("sinfo.O", ["sinfo", "-N", "-O", f"NodeList,{name}:.25"], "query")
    for line in wordlists.lines("queries"):
        yield from _line("query", line)
    for name, value, line in wordlists.QUERY_VARIABLES:
        row = next(iter(_line("query", line)))
        yield {**row, "id": f"{row['id']}@{name}={value}", "env": {name: value}}
    for line in wordlists.lines("holds"):
        yield from _line("control", line)
    for line in wordlists.lines("updates"):
        yield from _line("update", line)
        yield {"id": f"updated.{line}", "group": "control",
               "argv": ["scontrol", "-o", "show", "job", "{J:held}"]}  # fmt: skip
    for line in wordlists.lines("controls"):
        yield from _line("control", line)
    for name in ("c1", "c2", "c3", "c5", "c7", "c8", "c9"):
        yield {"run": ["sbatch", "-H", "--parsable", "-J", "c" + name, "-p", "long" if name == "c5" else "debug", "--wrap", "sleep 900"], "keep": name}  # fmt: skip
    yield {"run": ["sbatch", "-H", "--parsable", "-J", "cc4", "-a", "0-30", "--wrap", "sleep 900"], "keep": "c4"}
    yield {"run": ["sbatch", "-H", "--parsable", "-J", "ccb", "--wrap", "sleep 900"], "user": "bob", "keep": "cb"}
    yield {"run": ["sbatch", "-H", "-J", "cch", "-n1", ":", "-n1", "--wrap", "sleep 900"], "keep": "ch"}
    for line in wordlists.lines("cancels"):
        yield from _line("scancel", line)
        yield {"id": f"scanceled.{line}", "group": "query", "argv": ["squeue", "-h", "-o", "%i %j %t %u"]}


def accounting() -> Iterator[Step]:
    def run(name: str, argv: list[str], **more: Any) -> Step:
        return {"id": f"a.{name}", "group": "submit", "argv": argv, "keep": name, **more}

    yield run("aok", ["sbatch", "-J", "acct_ok", "-n2", "-t", "5", "--comment=cm", "--wrap", "srun sleep 1; srun -n1 true"], wait=True)  # fmt: skip
    yield run("afail", ["sbatch", "-J", "acct_fail", "--wrap", "srun bash -c 'exit 7'; exit 5"], wait=True)
    yield run("acan", ["sbatch", "-H", "-J", "acct_cancel", "--wrap", "hostname"], effect=False)
    yield {"run": ["scancel", "{J:acan}"]}
    yield {"sleep": 1}
    yield run("aarr", ["sbatch", "-W", "-J", "acct_arr", "-a", "1-2", "--wrap", "exit $((SLURM_ARRAY_TASK_ID-1))"], effect=False)  # fmt: skip
    yield run("ahet", ["sbatch", "-W", "-J", "acct_het", "-n1", ":", "-n2", "--wrap", "srun --het-group=0,1 true"], effect=False)  # fmt: skip
    yield run("agpu", ["sbatch", "-W", "-J", "acct_gpu", "-p", "gpu", "--gres=gpu:2", "--wrap", "true"], effect=False)
    yield run("asig", ["sbatch", "-J", "acct_sig", "--wrap", "kill -9 $$"], wait=True)
    yield {"sleep": 3}
    for name in wordlists.lines("sacct_fields"):
        yield _row("sacct.o", ["sacct", "-P", "-o", name, "-j", "{J:aok},{J:agpu}"], "query")
        yield _row("sacct.o", ["sacct", "-o", f"jobid%20,{name}%30", "-j", "{J:afail},{J:aarr},{J:ahet},{J:acan},{J:asig}"], "query")  # fmt: skip
    for line in wordlists.lines("sacct"):
        yield from _line("query", line)
    for name, value, line in wordlists.SACCT_VARIABLES:
        row = next(iter(_line("query", line)))
        yield {**row, "id": f"{row['id']}@{name}={value}", "env": {name: value}}
    for line in wordlists.lines("accounts"):
        yield from _line("account", line)
    for line in wordlists.lines("misc"):
        yield from _line("misc", line)


def _line(group: str, line: str) -> Iterator[Step]:
    """`user$ words`, alice's without a user; quotes as in a shell."""
    user, found, rest = line.partition("$ ")
    user, text = (user, rest) if found and user.isalpha() else ("", line)
    step: Step = {
        "id": f"{text.split()[0]}.{line}",
        "group": {"update": "control", "scancel": "control"}.get(group, group),
        "timeout": 15,
    }
    step["sh"] = text
    if user:
        step["user"] = user
    yield step


def numbered(found: Iterable[Step]) -> Iterator[Step]:
    """The same steps, no two with one name."""
    seen: dict[str, int] = {}
    for step in found:
        if "id" in step:
            count = seen[step["id"]] = seen.get(step["id"], 0) + 1
            step = {**step, "id": step["id"] + (f"#{count}" if count > 1 else "")}
        yield step


PARTS = {"submit": submissions, "steps": steps, "queue": queue, "accounting": accounting}

if __name__ == "__main__":
    for step in numbered(itertools.chain.from_iterable(PARTS[name]() for name in sys.argv[1:])):
        print(json.dumps({"part": "submit", **step}))
