"""Writes `slurmbridge/wire/srun_options.py`: srun's options as plain tuples, for the in-job srun.

    python -m slurmbridge.submit.generate > slurmbridge/wire/srun_options.py

The in-job srun may import nothing but the standard library; a test proves that the file is what this prints.
"""

from __future__ import annotations

from slurmbridge.submit.option import Option
from slurmbridge.submit.options import ENVIRONMENT, of_command

HEADER = '''"""srun's options as plain tuples: made from the option table by `slurmbridge.submit.generate`; do not edit.

OPTIONS: (long, short, arg, variables, field, kind, end, why) - arg "none", "required" or "optional"; variables are the
environment's names for it; kind is how the value is read; end "honoured", "recorded" or "refused" and, for the last
two, why. BY_LONG and BY_SHORT index it; a long option may be cut to any unambiguous beginning unless WHOLE has it.
"""

# fmt: off
'''


def _row(option: Option) -> str:
    variables = tuple(variable for variable, long in ENVIRONMENT["srun"] if long.rstrip("@") == option.long)
    row = (
        option.long,
        option.short,
        option.arg.value,
        variables,
        option.field,
        option.kind,
        option.end.value,
        option.why,
    )
    return f"    {row!r},\n"


def module_text() -> str:
    """The whole file."""
    options = of_command("srun")
    rows = "".join(_row(option) for option in options)
    whole = tuple(option.long for option in options if option.bridge)
    return (
        f"{HEADER}OPTIONS = (\n{rows})\n\n"
        "BY_LONG = {row[0]: row for row in OPTIONS}\n"
        "BY_SHORT = {row[1]: row for row in OPTIONS if row[1]}\n"
        f"WHOLE = {whole!r}\n"
    )


if __name__ == "__main__":
    print(module_text(), end="")
