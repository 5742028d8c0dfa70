"""Command line, environment and script become one request per component: who wins, and where does each value come from?

Precedence is sbatch's: command line, then SBATCH_* variables, then directives; #PBS lines win over #SBATCH and #BSUB over
both. A component of a heterogeneous job inherits from the one before all but the options marked `het` in the table.

    line = first_pass("sbatch", argv)             # what getopt says; --help and the like
    drafts = merge("sbatch", line, env, script)   # one Draft per component, or the first complaint
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping, Sequence

import msgspec

from slurmbridge.lang.directives import Directive, Script
from slurmbridge.model.request import JobRequest, Provenance
from slurmbridge.model.verdict import UsageError
from slurmbridge.submit import foreign
from slurmbridge.submit.getopt import Given, complain, scan
from slurmbridge.submit.option import Option
from slurmbridge.submit.options import BY_LONG, ENVIRONMENT, GETOPT
from slurmbridge.submit.value import Bad, Clock, Values, error
from slurmbridge.submit.values import read

COMMAND_LINE = Provenance(source="command line")


class Early(msgspec.Struct, frozen=True):
    """Something to do instead of the command: help, usage, version, or autocomplete with its text."""

    what: str
    text: str = ""


class CommandLine(msgspec.Struct, frozen=True, kw_only=True):
    """What was typed: options per component, the script and its arguments, and the early options."""

    components: tuple[tuple[Given, ...], ...]
    operands: tuple[str, ...] = ()
    programs: tuple[tuple[str, ...], ...] = ()  # operands of each component: srun runs one for each
    verbose: int = 0
    quiet: int = 0
    wrap: str | None = None


class Typed(msgspec.Struct, frozen=True):
    """How an option was last given: its text and where from."""

    option: Option
    text: str | None
    origin: Provenance


class Draft(msgspec.Struct, kw_only=True):
    """A component in the making. `values` by field; working values have a `+` before their name."""

    values: dict[str, object]
    origins: dict[str, Provenance]
    typed: dict[str, Typed]

    def copy_for_next(self) -> Draft:
        """What the next component inherits."""
        gone = {field for typed in self.typed.values() if typed.option.het for field in _fields_of(typed)}
        return Draft(
            values={field: value for field, value in self.values.items() if field not in gone},
            origins={field: origin for field, origin in self.origins.items() if field not in gone},
            typed={long: typed for long, typed in self.typed.items() if not typed.option.het},
        )


_SET_BY: dict[str, tuple[str, ...]] = {
    "nodes": ("nodes_min", "nodes_max", "node_counts"),
    "extra-node-info": ("sockets_per_node", "cores_per_socket", "threads_per_core", "+node-info-tasks"),
    "mem-per-cpu": ("+memory-cpu",),
    "mem-per-gpu": ("+memory-gpu",),
    "switches": ("switches", "switches_wait"),
    "exclusive": ("exclusive", "+shared"),
    "nodelist": ("nodelist", "+nodelist-file"),
    "nodefile": ("nodelist", "+nodelist-file", "+nodefile"),
    "tres-per-task": ("tres_per_task", "+tres-per-task", "+tres-refused", "+tres-no-cpu"),
}


def _fields_of(typed: Typed) -> tuple[str, ...]:
    return _SET_BY.get(typed.option.long, (typed.option.field or "+" + typed.option.long,))


def first_pass(command: str, argv: Sequence[str]) -> CommandLine | Early | UsageError:
    """Read the command line alone. Early options act in the order typed, before any later mistake."""
    return _remembered(command, tuple(argv)) if len(argv) <= _SHORT_LINE else _first_pass(command, argv)


def _first_pass(command: str, argv: Sequence[str]) -> CommandLine | Early | UsageError:
    words: Sequence[str] = argv[1:]
    components: list[tuple[Given, ...]] = []
    programs: list[tuple[str, ...]] = []
    verbose = quiet = 0
    wrap: str | None = None
    while True:
        found = scan(GETOPT[command], words, permute=False)
        for given in found.options:
            match given.key:
                case "help" | "usage" | "version":
                    return Early(given.key)
                case "autocomplete":
                    return Early(given.key, given.value or "")
                case "verbose":
                    verbose += 1
                case "quiet":
                    quiet += 1
                case "wrap":
                    wrap = given.value
        if found.problem:
            return complain(argv[0], found.problem, exit_code=255)
        components.append(tuple(found.options))
        end = (
            found.operands.index(":") if ":" in (found.operands if command == "srun" else found.operands[:1]) else None
        )
        programs.append(tuple(found.operands[:end]))
        if end is None:
            return CommandLine(
                components=tuple(components),
                operands=programs[0] if command == "srun" else found.operands,
                programs=tuple(programs),
                verbose=verbose,
                quiet=quiet,
                wrap=wrap,
            )
        words = found.operands[end + 1 :]


_SHORT_LINE = 8  # words; longer lines are read anew each time
_remembered = functools.lru_cache(maxsize=512)(_first_pass)


def typed_values(command: str, line: CommandLine, clock: Clock) -> Draft | Bad:
    """All options of the command line, whatever component they stand in: wrong values come out before the script is read.

    Options that are no component's own hold from the first component on, unless something there says otherwise.
    """
    draft = Draft(values={}, origins={}, typed={})
    for given in itertools.chain.from_iterable(line.components):
        bad = _apply(command, draft, BY_LONG[command][given.key], given.value, COMMAND_LINE, clock)
        if bad is not None:
            return bad
    return draft


def merge(
    command: str,
    line: CommandLine,
    env: Mapping[str, str],
    script: Script | None,
    *,
    script_name: str = "",
    clock: Clock,
    typed: Draft | None = None,
) -> tuple[Draft, ...] | Bad:
    """One draft per component; the first complaint ends it. `typed`: what `typed_values` gave."""
    directives = script.directives if script is not None else ()
    by_component: dict[int, list[Directive]] = {}
    for directive in directives:
        by_component.setdefault(directive.component, []).append(directive)
    number = max(len(line.components), max(by_component, default=0) + 1, _components(script))
    is_foreign_welcome = not _ignores_foreign(line, env, directives)
    drafts: list[Draft] = []
    previous = typed if typed is not None and number > 1 else Draft(values={}, origins={}, typed={})
    for index in range(number):
        draft = previous = previous.copy_for_next()
        bad = _apply_script(command, draft, by_component.get(index, ()), script_name, is_foreign_welcome, clock)
        bad = bad or _apply_environment(command, draft, env, clock)
        if bad is None and index < len(line.components):
            for given in line.components[index]:
                option = BY_LONG[command][given.key]
                bad = _apply(command, draft, option, given.value, COMMAND_LINE, clock)
                if bad is not None:
                    break
        if bad is not None:
            return bad
        drafts.append(draft)
    return tuple(drafts)


def _components(script: Script | None) -> int:
    return getattr(script, "components", 1) if script is not None else 1


def _ignores_foreign(line: CommandLine, env: Mapping[str, str], directives: Sequence[Directive]) -> bool:
    if all(directive.kind in ("SBATCH", "BRIDGE") for directive in directives):
        return False
    typed = any(given.key == "ignore-pbs" for options in line.components for given in options)
    written = any("--ignore-pbs" in (token.text for token in directive.tokens) for directive in directives)
    return typed or written or "SBATCH_IGNORE_PBS" in env


def _apply(
    command: str, draft: Draft, option: Option, text: str | None, origin: Provenance, clock: Clock
) -> Bad | None:
    found = read(command, option, text, clock)
    if isinstance(found, Bad):
        return found
    _set(draft, option, found, text, origin)
    return None


def _set(draft: Draft, option: Option, found: Values, text: str | None, origin: Provenance) -> None:
    for field, value in found:
        draft.values[field] = value
        draft.origins[field] = origin
    if option.long in draft.typed:
        del draft.typed[option.long]
    draft.typed[option.long] = Typed(option, text, origin)


def _apply_environment(command: str, draft: Draft, env: Mapping[str, str], clock: Clock) -> Bad | None:
    options = BY_LONG[command]
    if _VARIABLES[command].isdisjoint(env):
        return None
    for variable, long in ENVIRONMENT[command]:
        text = env.get(variable)
        if text is None:
            continue
        origin = Provenance(source="environment", place=variable)
        if long == "switches@":
            draft.values["switches_wait"] = _switch_wait(text)
            draft.origins["switches_wait"] = origin
            continue
        option = options[long]
        value = None if option.flag else text
        bad = _apply(command, draft, option, value, origin, clock)
        if bad is not None:
            return bad
    return None


def _switch_wait(text: str) -> object:
    found = read("sbatch", BY_LONG["sbatch"]["switches"], f"1@{text}", Clock(0.0))
    return dict(found).get("switches_wait") if not isinstance(found, Bad) else None


def _apply_script(
    command: str,
    draft: Draft,
    directives: Sequence[Directive],
    file: str,
    is_foreign_welcome: bool,
    clock: Clock,
) -> Bad | None:
    own = [directive for directive in directives if directive.kind in ("SBATCH", "BRIDGE")]
    bad = _apply_own(command, draft, own, file, clock) if own else None
    if bad is not None or len(own) == len(directives) or not is_foreign_welcome:
        return bad
    for kind in ("PBS", "BSUB"):
        for directive in directives:
            if directive.kind == kind:
                bad = _apply_foreign(command, draft, directive, file, clock)
                if bad is not None:
                    return bad
    return None


def _apply_own(command: str, draft: Draft, directives: Sequence[Directive], file: str, clock: Clock) -> Bad | None:
    """All #SBATCH lines of a component are one command line; empty words are dropped as sbatch drops them."""
    tokens = [token for directive in directives for token in directive.tokens if token.text]
    found = scan(GETOPT[command], [token.text for token in tokens], permute=False)
    options = BY_LONG[command]
    for given in found.options:
        token = tokens[given.at]
        origin = Provenance(source="directive", place=f"{file}:{token.line}:{token.column}")
        bad = _apply(command, draft, options[given.key], given.value, origin, clock)
        if bad is not None:
            return bad
    if found.problem:
        hint = f'Try "{command} --help" for more information'
        return Bad((("program", found.problem), ("", hint)), 255)
    if found.operands:
        return error(f"Invalid directive found in batch script: {found.operands[0]}")
    return None


def _apply_foreign(command: str, draft: Draft, directive: Directive, file: str, clock: Clock) -> Bad | None:
    translated = foreign.translate(directive.kind, [token.text for token in directive.tokens if token.text])
    origin = Provenance(source="directive", place=f"{file}:{directive.line}:{directive.column}")
    for long, text in translated.pairs:
        bad = _apply(command, draft, BY_LONG[command][long], text, origin, clock)
        if bad is not None:
            return bad
    return translated.bad


_FIELDS = frozenset(JobRequest.__struct_fields__)
_VARIABLES = {command: frozenset(name for name, _ in pairs) for command, pairs in ENVIRONMENT.items()}
_TEXT_UNTIL_LATER = frozenset({"array", "dependency"})


def request_of(draft: Draft, **fields: object) -> JobRequest:
    """The typed request of a verified draft; `fields` replace what the draft holds as text."""
    values = {
        field: value
        for field, value in draft.values.items()
        if field in _FIELDS and field not in _TEXT_UNTIL_LATER and value is not None
    }
    values.update(fields)
    recorded = tuple(
        (long, str(value))
        for long, value in ((field[1:], value) for field, value in draft.values.items() if field[:1] == "+")
        if long in _RECORDED and value is not None
    )
    provenance = tuple((field, origin) for field, origin in draft.origins.items() if field in _FIELDS)
    return JobRequest(recorded=recorded, provenance=provenance, **values)  # type: ignore[arg-type]


_RECORDED = frozenset(option.long for option in BY_LONG["srun"].values()) | frozenset(BY_LONG["sbatch"])
