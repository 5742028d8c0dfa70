"""Figures as text: what is rendered is read back the same; names that Prometheus refuses are refused here."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmbridge.wire.prometheus import counter, gauge, render

LINE = re.compile(r'(?P<name>[a-z_]+)\{word="(?P<label>(?:[^"\\\n]|\\.)*)"\} (?P<value>\S+)')


def unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: {"n": "\n"}.get(found[1], found[1]), text)


@given(
    label=st.text(),
    value=st.one_of(st.integers(-(2**53), 2**53), st.floats(allow_nan=False, allow_infinity=False)),
)
def test_what_is_rendered_is_read_back(label: str, value: float) -> None:
    last = render([gauge("a_name", "About.", ({"word": label}, value))]).split("\n")[2:-1]
    found = LINE.fullmatch("\n".join(last))
    assert found is not None and unescaped(found["label"]) == label and float(found["value"]) == value


def test_a_family_is_told_with_its_kind_and_what_it_is_about() -> None:
    text = render([counter("seen_total", "What\nwas seen.", ({}, 3), ({"by": "a"}, 0.5))])
    assert (
        text == '# HELP seen_total What\\nwas seen.\n# TYPE seen_total counter\nseen_total 3\nseen_total{by="a"} 0.5\n'
    )


def test_a_family_without_samples_is_told_to_exist() -> None:
    assert render([gauge("none", "Nothing.")]) == "# HELP none Nothing.\n# TYPE none gauge\n"


@pytest.mark.parametrize(("value", "text"), [(float("nan"), "NaN"), (float("inf"), "+Inf"), (float("-inf"), "-Inf"), (True, "1")])  # fmt: skip
def test_numbers_are_spelled_as_prometheus_spells_them(value: float, text: str) -> None:
    assert render([gauge("n", "N.", ({}, value))]).endswith(f"n {text}\n")


@pytest.mark.parametrize("name", ["", "1st", "with space", "dash-ed", "é"])
def test_names_that_prometheus_refuses_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="no name"):
        render([gauge(name, "N.", ({}, 1))])
    with pytest.raises(ValueError, match="no name"):
        render([gauge("n", "N.", ({name: "x"}, 1))])
