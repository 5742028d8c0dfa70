"""What do settings make of a record, and how does `add` repeat them? Values in, values out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from slurmbridge.commands import quotas
from slurmbridge.commands.accounting_words import Edit, Word, show_tres
from slurmbridge.lang import durations
from slurmbridge.model.accounts import Assoc, Qos
from slurmbridge.model.tres import Tres
from slurmbridge.submit.associations import is_change

_OF_TRES = ("tres", "deserved")
TRES_MOST = 18446744073709551600


def apply_to_assoc(assoc: Assoc, edits: Sequence[Edit]) -> Assoc:
    for edit in edits:
        if edit.word.kind == "shares":
            parent = edit.value == "parent"
            shares = 1 if parent or edit.value is None else edit.value
            assoc = replace(assoc, shares=shares, shares_parent=parent)
        elif edit.word.field == "qos":
            assoc = replace(assoc, qos=_assoc_qos(assoc.qos, edit))
        else:
            assoc = _put(assoc, edit)
    return assoc


def apply_to_qos(qos: Qos, edits: Sequence[Edit]) -> Qos:
    for edit in edits:
        if edit.word.kind == "qoslist":
            qos = replace(qos, preempt=_qos_of(qos.preempt, edit) or ())
        elif edit.word.kind == "flags" and edit.operator != "=":
            kept = [flag for flag in qos.flags if flag not in edit.value]
            qos = replace(qos, flags=tuple(kept + list(edit.value)) if edit.operator == "+" else tuple(kept))
        else:
            qos = _put(qos, edit)
    return qos


def _assoc_qos(before: tuple[str, ...] | None, edit: Edit) -> tuple[str, ...] | None:
    """`+=` and `-=` change a list of its own; without one they are kept as changes of what comes from above."""
    if before is not None and not is_change(before):
        return _qos_of(before, edit)
    signs = _signed(edit)
    if not signs or (edit.operator == "=" and not any(sign for sign, _name in edit.value)):
        return _qos_of((), edit)
    kept = {} if edit.operator == "=" else {name[1:]: name[0] for name in before or ()}
    kept |= {name: sign for sign, name in signs}
    return tuple(sorted(sign + name for name, sign in kept.items()))


def _signed(edit: Edit) -> list[tuple[str, str]]:
    return [(sign or ("+" if edit.operator == "=" else edit.operator), name) for sign, name in edit.value]


def _qos_of(before: tuple[str, ...], edit: Edit) -> tuple[str, ...] | None:
    """None: inherited again."""
    named = [name for _sign, name in edit.value]
    if edit.operator == "=" and not any(sign for sign, _name in edit.value):
        return tuple(sorted(set(named))) if named else None
    result = set(before)
    for sign, name in _signed(edit):
        if sign == "+":
            result.add(name)
        else:
            result.discard(name)
    return tuple(sorted(result))


def _put(record: Any, edit: Edit) -> Any:
    top, _, inner = edit.word.field.rpartition(".")
    if top == "quota":
        return quotas.put(record, edit.pools, inner, lambda before: _value(before, edit))
    if top:
        limits = record.limits
        return replace(record, limits=replace(limits, **{inner: _value(getattr(limits, inner), edit)}))
    return replace(record, **{inner: _value(getattr(record, inner), edit)})


def _value(before: Any, edit: Edit) -> Any:
    if edit.word.kind == "deserved" and edit.value is None:
        return ()
    return merge_tres(before, edit.value) if edit.word.kind in _OF_TRES else edit.value


def merge_tres(before: Tres, parts: Sequence[tuple[str, str, int | None]]) -> Tres:
    """Name by name; what is not named stays. `-` below zero gives zero, as in Slurm."""
    result = dict(before)
    for name, operator, count in parts:
        if count is None:
            result.pop(name, None)
        elif operator == "=":
            result[name] = count
        else:
            total = result.get(name, 0) + (count if operator == "+" else -count)
            result[name] = min(max(total, 0), TRES_MOST)
    return tuple(result.items())


def settings(edits: Sequence[Edit], words: Sequence[Word], order: dict[str, int], column: int) -> list[str]:
    """The lines with which `add` repeats what was set, in the table's order."""
    last: dict[str, tuple[Word, Any]] = {}
    for edit in edits:
        label = edit.word.label or edit.word.name
        value = edit.value
        if edit.word.kind in _OF_TRES and value is not None and label in last:
            value = (*(last[label][1] or ()), *value)
        last[label] = (edit.word, value)
    lines = []
    pools = next((edit.pools for edit in edits if edit.pools), ())
    for label in dict.fromkeys(word.label or word.name for word in words if not word.part):
        if label in last:
            word, value = last[label]
            lines.append(f"  {label:<{word.wide or column}}= {_show(word, value, order)}")
    return [*lines, f"  {'Pool':<{column}}= {','.join(pools)}"] if pools else lines


def _show(word: Word, value: Any, order: dict[str, int]) -> str:
    if value is None:
        return "NONE"
    if word.kind in _OF_TRES:
        return show_tres(merge_tres((), value), order)
    if word.kind == "weight":
        return quotas.weight_text(value)
    if word.kind == "minutes":
        return durations.render_elapsed(value * 60)
    if word.kind == "exempt":
        return durations.render_elapsed(value)
    if word.kind in ("factor", "number"):
        return f"{value:.4f}"
    if word.kind == "qoslist":
        return ",".join(sorted(sign + name for sign, name in value))
    if word.kind == "flags":
        return ",".join(value)
    if word.kind == "mode":
        return str(value).upper()
    if word.kind == "switch":
        return "yes" if value else "no"
    return str(value)
