"""Writes reference pages, man pages and shell completion from the tables that the product itself uses.

A test proves that they are fresh.

docs/generate.py             write docs/reference/*.md and share/
docs/generate.py --check     exit 1 and name the files that differ
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from slurmbridge.cli.described import described
from slurmbridge.commands.pages.files import files
from slurmbridge.commands.table import COMMANDS
from slurmbridge.errors import SlurmErrno
from slurmbridge.fields import jobs, nodes, steps
from slurmbridge.lang import slurm_conf_dbd as dbd
from slurmbridge.lang.site_words import WORDS
from slurmbridge.lang.slurm_conf_keys import KEYS
from slurmbridge.model.states import JobFlag, JobState
from slurmbridge.submit.option import Option
from slurmbridge.submit.options import ENVIRONMENT, TABLE

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs/reference"
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
        + "\n# Keys of slurmdbd.conf\n\n"
        + "The file is read when it lies beside slurm.conf. Ends of retention take effect: "
        + ", ".join(code(key) for key in dbd.KEYS if key not in dbd.WITHOUT_EFFECT)
        + ".\n\n## Accepted without effect (slurmdbd.conf)\n\n"
        + table(("key", "why"), ((code(key), why) for key, why in dbd.WITHOUT_EFFECT.items()))
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


def site_file() -> str:
    heads = {
        "defaults": "`defaults`: of all partitions", "partitions": "`partitions: NAME:` one of them",
        "nodes": "`nodes`: what labels of a cluster's nodes mean", "pools": "`pools: NAME:` nodes that quotas are counted in",
        "scheduling": "`scheduling`: the order of jobs",
    }  # fmt: skip
    text = (
        "# The site file\n\n`--site FILE` is YAML beside slurm.conf. A field of a partition stands in place of the one of\n"
        "`defaults`. Fields of pods have Kubernetes' own words and shapes. On virtual nodes, fields that need a cluster are\n"
        "listed as without effect. A file with a fault is refused whole, with the line, also by `scontrol reconfigure`,\n"
        "which reads it again. `slurmbridge check-config --kube --site FILE` says what it makes of one.\n"
    )
    for section, head in heads.items():
        rows = ((code(field.name), field.shape, field.text) for field in WORDS if section in field.sections)
        more = "Those of `defaults` but for `gpuMemoryMiB`.\n" if section == "partitions" else ""
        text += f"\n## {head}\n\n{more or table(('field', 'value', 'meaning'), rows)}"
    return text


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
    "site-file.md": site_file,
}


def wanted() -> dict[str, str]:
    """Every generated file, by its path in the repository."""
    pages = {f"docs/reference/{name}": NOTE + page() for name, page in PAGES.items()}
    return pages | files("slurmbridge", [described()])


def stale() -> list[str]:
    """Files that are not what the tables say, and files that nothing stands for any more."""
    texts = wanted()
    wrong = [name for name, text in texts.items() if not (ROOT / name).exists() or (ROOT / name).read_text() != text]
    return wrong + [name for name in present() if name not in texts]


def present() -> list[str]:
    """What lies in share/ now."""
    return sorted(str(path.relative_to(ROOT)) for path in (ROOT / "share").rglob("*") if path.is_file())


def main(argv: Sequence[str]) -> int:
    if "--check" in argv:
        wrong = stale()
        for name in wrong:
            print(f"{name} is not fresh: make docs")
        return 1 if wrong else 0
    texts = wanted()
    for name, text in texts.items():
        (ROOT / name).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / name).write_text(text)
    for name in present():
        if name not in texts:
            (ROOT / name).unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
