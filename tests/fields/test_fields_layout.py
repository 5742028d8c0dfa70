"""A format string becomes lines: widths, sides, unknown columns, and one pass over the rows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmbridge.fields.layout import Field, Registry
from slurmbridge.fields.view import View
from slurmbridge.model.cluster import ClusterConfig

VIEW = View(config=ClusterConfig(), now=0.0)
REGISTRY: Registry[str] = Registry(
    (
        Field("Name", "j", "NAME", lambda row, view: row),
        Field("NodeList", "N", "NODELIST", lambda row, view: row, cut=False, cut_heading=False),
    ),
    complaint="bad ",
    named_complaint="bad ",
)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("%j", "runner"),
        ("%.8j|", "  runner|"),
        ("%8j|", "runner  |"),
        ("%.3j|", "run|"),
        ("%.3N|", "runner|"),
        ("%0j|%.0j", "runner|runner"),
        ("a%jb%jc", "arunnerbrunnerc"),
        ("%q", "%q"),
        ("%-5j|", "%-5j|"),
        ("100", "100"),
        ("", ""),
        ("%", ""),
    ],
)
def test_a_letter_format_gives_this_line(spec: str, expected: str) -> None:
    layout, _ = REGISTRY.from_letters(spec)
    assert "".join(layout.pieces(["runner"], VIEW)) == expected + "\n"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("Name", "runner" + " " * 14),
        ("NAME:8", "runner  "),
        ("name:.8", "  runner"),
        ("name:3|,name: ;", "run|runner ;"),
        ("name:|", "runner|"),
        ("nosuch,name:6", "runner"),
    ],
)
def test_a_format_of_names_gives_this_line(spec: str, expected: str) -> None:
    layout, _ = REGISTRY.from_names(spec)
    assert "".join(layout.pieces(["runner"], VIEW)) == expected + "\n"


def test_unknown_columns_are_reported_once_each() -> None:
    assert REGISTRY.from_letters("%q %z %j")[1] == ["bad q", "bad z"]
    assert REGISTRY.from_names("nosuch,name")[1] == ["bad nosuch"]


def test_a_heading_may_stay_whole_where_values_are_cut() -> None:
    layout, _ = REGISTRY.from_letters("%.2j %.2N")
    assert layout.header == "NA NODELIST"


@given(st.text(max_size=60))
def test_no_format_text_breaks_a_listing(spec: str) -> None:
    for read in (REGISTRY.from_letters, REGISTRY.from_names):
        layout, _ = read(spec)
        assert "".join(layout.pieces(["a", "b%s"], VIEW)).count("\n") == 2 * (
            1 + ("".join(layout.pieces(["a"], VIEW)).count("\n") - 1)
        )


def test_each_column_is_computed_once_per_row() -> None:
    calls = []

    def get(row: str, view: View) -> str:
        calls.append(row)
        return row

    registry: Registry[str] = Registry((Field("X", "x", "X", get),), complaint="", named_complaint="")
    layout, _ = registry.from_letters("%.5x %x")
    "".join(layout.pieces(["a"] * 1000, VIEW))
    assert len(calls) == 2000
