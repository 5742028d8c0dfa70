"""What did a command line say? The rules and the words of getopt_long, as every Slurm command uses it.

A command declares its options as a table of `Opt`; `parse` gives the options in the order typed, with their values
still text, and the operands. Long options may be cut to any unambiguous beginning, short ones may be joined, `--` ends
the options. With `permute` operands may stand between options, otherwise the first operand ends them (sbatch, srun).

Source: getopt_long(3) of the GNU C library, whose messages are printed word by word. Knows nothing about what an option
means.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from functools import lru_cache

import msgspec

from slurmbridge.model.verdict import UsageError


class Arg(enum.Enum):
    """Whether an option takes a value."""

    NONE = "none"
    REQUIRED = "required"
    OPTIONAL = "optional"  # only as --name=value or -nvalue


class Opt(msgspec.Struct, frozen=True):
    """One option. `key` is what the command calls it; empty: the long name (or the letter when there is none)."""

    long: str = ""
    short: str = ""
    arg: Arg = Arg.NONE
    key: str = ""
    whole: bool = False  # only by its whole long name: options of ours take no abbreviation from Slurm's

    @property
    def name(self) -> str:
        return self.key or self.long or self.short


class Given(msgspec.Struct, frozen=True):
    """One option as typed: its key, its value (None: none given), and which element of argv it began in."""

    key: str
    value: str | None
    opt: Opt
    at: int = 0


class Parsed(msgspec.Struct, frozen=True, kw_only=True):
    """Options in the order typed, then what is left."""

    options: tuple[Given, ...] = ()
    operands: tuple[str, ...] = ()

    def has(self, key: str) -> bool:
        return any(given.key == key for given in self.options)

    def last(self, key: str, default: str | None = None) -> str | None:
        """The value of the last option of this key."""
        for given in reversed(self.options):
            if given.key == key:
                return given.value
        return default

    def all(self, key: str) -> tuple[str | None, ...]:
        return tuple(given.value for given in self.options if given.key == key)

    def count(self, key: str) -> int:
        return sum(given.key == key for given in self.options)


class OptTable:
    """Options indexed for look-up. Build it once per command; order decides how ambiguities are listed."""

    def __init__(self, opts: Sequence[Opt]) -> None:
        self.opts = tuple(opts)
        self.by_long = {opt.long: opt for opt in self.opts if opt.long}
        self.by_short = {opt.short: opt for opt in self.opts if opt.short}
        self._beginnings: dict[str, tuple[Opt, ...]] = {}

    def beginning(self, name: str) -> tuple[Opt, ...]:
        """Options whose long name begins so; options of one key count once."""
        found = self._beginnings.get(name)
        if found is None:
            matches = [opt for long, opt in self.by_long.items() if long.startswith(name) and not opt.whole]
            first = matches[:1]  # others that mean the same as the first are not worth a word
            matches = first + [opt for opt in matches[1:] if (opt.name, opt.arg) != (first[0].name, first[0].arg)]
            found = tuple(matches)
            if len(self._beginnings) < 1024:
                self._beginnings[name] = found
        return found


class Scan(msgspec.Struct, kw_only=True):
    """What was read before the first mistake: commands act on early options (--help) even when a later one is wrong."""

    options: list[Given]
    operands: tuple[str, ...] = ()
    problem: str = ""  # the C library's words, without the program's name

    @property
    def parsed(self) -> Parsed:
        return Parsed(options=tuple(self.options), operands=self.operands)


def scan(table: OptTable, words: Sequence[str], *, permute: bool = True) -> Scan:
    """Read `words` (argv without the program). Linear; never raises."""
    options: list[Given] = []
    operands: list[str] = []
    at, end = 0, len(words)
    while at < end:
        word = words[at]
        if len(word) < 2 or word[0] != "-":
            if not permute:
                operands.extend(words[at:])
                break
            operands.append(word)
            at += 1
            continue
        if word == "--":
            operands.extend(words[at + 1 :])
            break
        begin = at
        if word[1] == "-":
            name, equals, value = word[2:].partition("=")
            opt = table.by_long.get(name)
            if opt is None:
                matches = table.beginning(name)
                if not matches:
                    return Scan(options=options, problem=f"unrecognized option '{word}'")
                if len(matches) > 1:
                    names = " ".join(f"'--{each.long}'" for each in matches)
                    return Scan(options=options, problem=f"option '{word}' is ambiguous; possibilities: {names}")
                opt = matches[0]
            given: str | None = value if equals else None
            if opt.arg is Arg.NONE and equals:
                return Scan(options=options, problem=f"option '--{opt.long}' doesn't allow an argument")
            if opt.arg is Arg.REQUIRED and not equals:
                at += 1
                if at >= end:
                    return Scan(options=options, problem=f"option '--{opt.long}' requires an argument")
                given = words[at]
            options.append(Given(opt.name, given, opt, begin))
        else:
            place, size = 1, len(word)
            while place < size:
                letter = word[place]
                place += 1
                short = table.by_short.get(letter)
                if short is None:
                    return Scan(options=options, problem=f"invalid option -- '{letter}'")
                if short.arg is Arg.NONE:
                    options.append(Given(short.name, None, short, begin))
                    continue
                if place < size:
                    given = word[place:]
                elif short.arg is Arg.OPTIONAL:
                    given = None
                else:
                    at += 1
                    if at >= end:
                        return Scan(options=options, problem=f"option requires an argument -- '{letter}'")
                    given = words[at]
                options.append(Given(short.name, given, short, begin))
                break
        at += 1
    return Scan(options=options, operands=tuple(operands))


@lru_cache(maxsize=64)
def _table(opts: tuple[Opt, ...]) -> OptTable:
    return OptTable(opts)


def parse(
    opts: OptTable | Sequence[Opt],
    argv: Sequence[str],
    *,
    permute: bool = True,
    exit_code: int = 1,
    hint: str | None = None,
) -> Parsed | UsageError:
    """Read a whole command line, argv[0] being the program.

    A mistake gives the C library's line, then `hint` (default: Slurm's `Try "PROGRAM --help" for more information`;
    empty: none).
    """
    program = argv[0] if argv else ""
    table = opts if isinstance(opts, OptTable) else _table(tuple(opts))
    found = scan(table, argv[1:], permute=permute)
    if found.problem:
        return complain(program, found.problem, exit_code=exit_code, hint=hint)
    return found.parsed


def complain(program: str, problem: str, *, exit_code: int = 1, hint: str | None = None) -> UsageError:
    """The lines of a getopt mistake."""
    second = f'Try "{program} --help" for more information' if hint is None else hint
    lines = (f"{program}: {problem}", second) if second else (f"{program}: {problem}",)
    return UsageError(lines=lines, exit_code=exit_code)
