"""No text makes a parser raise anything but LangError, and none takes more than linear time."""

import time
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from slurmbridge.errors import LangError
from slurmbridge.lang import (
    arrays,
    binding,
    constraints,
    dependencies,
    directives,
    distribution,
    durations,
    export,
    filenames,
    formats,
    gres,
    hostlist,
    licenses,
    mail,
    nodes,
    rlimits,
    signals,
    sizes,
    times,
    tres,
)

PARSERS: dict[str, Callable[[str], object]] = {
    "arrays": lambda text: arrays.parse(text, 1001),
    "constraints": constraints.parse,
    "cpu_bind": binding.check_cpu_bind,
    "dependencies": dependencies.parse,
    "distribution": distribution.parse,
    "durations": durations.parse_minutes,
    "export": export.parse,
    "filenames": lambda text: filenames.expand(text, {"j": "1"}),
    "formats_letters": formats.parse_letters,
    "formats_names": formats.parse_names,
    "formats_sacct": formats.parse_sacct,
    "gpu_bind": binding.check_gpu_bind,
    "gpus": lambda text: gres.parse_gres(text, "gpus"),
    "gres": lambda text: gres.parse_gres(text, "gres"),
    "hostlist": hostlist.expand,
    "licenses": licenses.parse,
    "mail": mail.parse,
    "mem_bind": binding.check_mem_bind,
    "nodes": nodes.parse,
    "rlimits": rlimits.parse,
    "seconds": durations.parse_seconds,
    "signals": signals.parse_option,
    "sizes": sizes.parse_mib,
    "times": lambda text: times.parse(text, 1_700_000_000),
    "tres": tres.parse_counts,
    "tres_per_task": lambda text: gres.parse_gres(text, "tres"),
}
PIECES = "0 1 9 25 1k 2G -1 : - , + @ % / . * & | [ ] ( ) = \" ' \\ # T now afterok gpu a100 n1 ALL USR1 B: \0 é ٣ block plane mem"
SPLICED = st.lists(st.sampled_from(PIECES.split(" ") + [" ", "\n", "\t"]), max_size=14).map("".join)


@pytest.mark.parametrize("name", PARSERS)
@settings(max_examples=60, deadline=None)
@given(st.one_of(SPLICED, st.text(max_size=30)))
@example("")
@example("\0")
@example("9" * 5000)
@example("9" * 5000 + "-" + "9" * 5000)
def test_a_parser_raises_nothing_but_its_own_error(name: str, text: str) -> None:
    try:
        PARSERS[name](text)
    except LangError as error:
        assert isinstance(error.message, str)


@pytest.mark.parametrize("name", PARSERS)
@pytest.mark.parametrize(
    "unit", ["1", "1,", "a", "[1-2]", "((", '"', "%5", "now", ":1", "1-", "a&", "\\", "x=1,", "]["]
)
def test_a_long_text_is_answered_in_linear_time(name: str, unit: str) -> None:
    short, long = (_seconds(name, unit * (length // len(unit))) for length in (10_000, 1_000_000))
    assert long < 1000 * max(short, 0.001)  # a hundred times as long; squared it would be ten thousand


def _seconds(name: str, text: str) -> float:
    began = time.process_time()
    try:
        PARSERS[name](text)
    except LangError:
        pass
    return time.process_time() - began


@settings(max_examples=200, deadline=None)
@given(
    st.one_of(
        st.binary(max_size=200), SPLICED.map(lambda text: f"#!/bin/sh\n#SBATCH {text}\n".encode(errors="replace"))
    )
)
@example(b"#!x\n#SBATCH " + b'"' * 1_000_000)
@example(b"#!x\n#SBATCH " + b"a " * 500_000)
@example(b"#SBATCH \xff\xfe\x00")
def test_any_bytes_are_a_script(data: bytes) -> None:
    script = directives.read_script(data)
    for directive in script.directives:
        assert directive.line >= 1
        assert all(token.text and token.column > 4 for token in directive.tokens)
