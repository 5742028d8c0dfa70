"""Amounts of CPU, memory and devices as Kubernetes writes them."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmbridge.errors import LangError
from slurmbridge.runtime.kube.quantities import SCALES, count, mebibytes, milli, parse

AMOUNTS = [
    ("250m", "0.25"), ("1.5", "1.5"), ("2", "2"), ("64Gi", str(64 * 2**30)), ("1k", "1000"), ("2e3", "2000"), ("1E2", "100"),
    ("1E", "1e18"), ("5E-1", "0.5"), (".5", "0.5"), ("1.", "1"), ("100n", "1e-7"), ("-3", "-3"), ("0", "0"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "value"), AMOUNTS)
def test_a_quantity_is_exact(text: str, value: str) -> None:
    assert parse(text) == Decimal(value)


@pytest.mark.parametrize("text", ["", "Gi", "1 Gi", "1gi", "1K", "1e", "1e9999", "--1", "1Gi2", "one", "1" * 65, "٣"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(LangError, match="invalid quantity"):
        parse(text)


def test_what_is_asked_for_is_rounded_up_and_what_is_there_down() -> None:
    assert (milli("1n", up=True), milli("1n", up=False)) == (1, 0)
    assert (mebibytes("1", up=True), mebibytes("1", up=False)) == (1, 0)
    assert (mebibytes("128974848", up=True), mebibytes("123Mi", up=False)) == (123, 123)
    assert count("3900m") == 3


@given(st.integers(0, 10**6), st.sampled_from(sorted(SCALES)))
def test_a_suffix_multiplies(number: int, suffix: str) -> None:
    assert parse(f"{number}{suffix}") == number * SCALES[suffix]
