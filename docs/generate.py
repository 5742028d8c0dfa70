"""Writes the reference pages from the tables that the product itself uses. A test proves that they are fresh.

docs/generate.py             write docs/reference/*.md
docs/generate.py --check     exit 1 and name the pages that differ
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from slurmbridge.commands.table import COMMANDS
from slurmbridge.errors import SlurmErrno
from slurmbridge.fields import jobs, nodes, steps
from slurmbridge.lang.slurm_conf_keys import KEYS
from slurmbridge.model.states import JobFlag, JobState
from slurmbridge.submit.option import Option
from slurmbridge.submit.options import ENVIRONMENT, TABLE

FOLDER = Path(__file__).resolve().parent / "reference"
NOTE = "<!-- Written by docs/generate.py from the tables of the product: edit those. -->\n"
TAKERS = {"b": "sbatch", "r": "srun", "a": "salloc"}


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def code(text: str) -> str:
    return f"`{text}`" if text else ""


def options() -> str:
    variables: dict[str, list[str]] = {}
    for pairs in ENVIRONMENT.values():
        for variable, long in pairs:
            if variable not in variables.setdefault(long, []):
                variables[long].append(variable)

    def row(option: Option) -> tuple[str, ...]:
        name = f"`--{option.long}`" + (f", `-{option.short}`" if option.short else "")
        takers = ", ".join(TAKERS[letter] for letter in "bra" if letter in option.commands)
        twins = ", ".join(code(name) for name in variables.get(option.long, ()))
        return name, takers, option.help, twins, option.end.value, option.why

    ends = {end: sum(1 for option in TABLE if option.end.value == end) for end in ("honoured", "recorded", "refused")}
    counts = ", ".join(f"{count} {end}" for end, count in ends.items())
    return (
        "# Options of sbatch, srun and salloc\n\n"
        f"Every option has one of three ends ({counts}); none is ignored silently. **Honoured**: it takes effect.\n"
        "**Recorded**: checked as Slurm checks it, stored and shown, without effect for the reason given. **Refused**: an\n"
        "error with the reason. Options of ours may also stand in `#BRIDGE` lines.\n\n"
        + table(("option", "commands", "what", "variables", "end", "why"), map(row, TABLE))
    )


def conf() -> str:
    working = [key for key in KEYS if not key.why]
    idle = [key for key in KEYS if key.why]
    return (
        "# Keys of slurm.conf\n\n"
        f"{len(working)} keys take effect, {len(idle)} are accepted without effect; `slurmbridge check-config FILE` lists\n"
        "those of a file. Any other key is an error with its line.\n\n## With effect\n\n"
        + table(("key", "kind", "default"), ((code(key.name), key.kind.value, key.default or "") for key in working))
        + "\n## Accepted without effect\n\n"
        + table(("key", "why"), ((code(key.name), key.why) for key in idle))
    )


def columns() -> str:
    parts = ["# Output columns\n\n`-o` takes letters, `-O` names.\n"]
    for title, registry in (("squeue", jobs.REGISTRY), ("squeue -s", steps.REGISTRY), ("sinfo", nodes.REGISTRY)):
        rows = [(code(each.name), code(each.letter), each.heading) for each in registry.fields if not each.hidden]
        parts.append(f"\n## {title}\n\n" + table(("name", "letter", "heading"), rows))
    return "".join(parts)


def commands() -> str:
    rows = [(code(name), "yes" if entry.module else f"not yet: {entry.missing}") for name, entry in COMMANDS.items()]
    return "# Commands\n\nA command that is missing says so and exits 1.\n\n" + table(("command", "there"), rows)


def states() -> str:
    return (
        "# Job states and refusals\n\n## States\n\n"
        + table(("state", "code"), ((each.name, each.value) for each in JobState))
        + "\n## Flags, shown instead of the state\n\n"
        + table(("flag", "code"), ((each.name, each.value) for each in JobFlag))
        + "\n## Refusals of the controller\n\n"
        + table(("name", "text", "HTTP status"), ((each.name, each.text, str(each.http_status)) for each in SlurmErrno))
    )


PAGES: dict[str, Callable[[], str]] = {
    "options.md": options,
    "slurm-conf.md": conf,
    "columns.md": columns,
    "commands.md": commands,
    "states.md": states,
}


def stale() -> list[str]:
    """Pages that are not what the tables say."""
    return [
        name
        for name, page in PAGES.items()
        if not (FOLDER / name).exists() or (FOLDER / name).read_text() != NOTE + page()
    ]


def main(argv: Sequence[str]) -> int:
    if "--check" in argv:
        wrong = stale()
        for name in wrong:
            print(f"docs/reference/{name} is not fresh: make docs")
        return 1 if wrong else 0
    FOLDER.mkdir(exist_ok=True)
    for name, page in PAGES.items():
        (FOLDER / name).write_text(NOTE + page())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
