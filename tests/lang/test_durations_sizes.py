"""Expected values: sbatch 26.05 --time, --mem, --tmp and what scontrol then shows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmbridge.errors import LangError
from slurmbridge.lang import durations, sizes
from slurmbridge.model.units import UNLIMITED

LIMITS = {
    "1:60": "00:02:00", "1:61": "00:03:00", "25:61:00": "1-02:01:00", "1-25": "2-01:00:00",
    "1-25:61:61": "2-02:03:00", "0:0:1": "00:01:00", "1-": "1-00:00:00", "2-": "2-00:00:00",
    "90:00": "01:30:00", "0:30": "00:01:00", "36:00:00": "1-12:00:00", "0-0:5": "00:05:00",
    "024:00:00": "1-00:00:00", "00:1:00": "00:01:00", "365-0": "365-00:00:00", "1-2:3": "1-02:03:00",
    "0": "UNLIMITED", "0:00": "UNLIMITED", "0-0": "UNLIMITED", "-1": "UNLIMITED", "infinite": "UNLIMITED",
    "UNLIMITED": "UNLIMITED", "4294967296": "UNLIMITED",
}  # fmt: skip
NO_LIMITS = "1:2:3:4 1.5 5: :5 1::2 1-:5 - INF 1d 5m 1--2 1:2:3: 10:-5 1-1-1 1-2:3:4:5 UNLIMITEDx".split()
MEMORY = {
    "100": "100M", "1024K": "1M", "1G": "1G", "100m": "100M", "100MB": "100M", "1gb": "1G", "2048k": "2M", "16gb": "16G",
    "1023K": "1M", "1025K": "2M", "1KB": "1M", "+5": "5M", " 5": "5M", "0": "0", "0K": "0", "1T": "1T", "1TB": "1T",
    "1536": "1.50G", "1025": "1025M", "16000": "16000M", "1000000": "1000000M", "1048576": "1T", "64000": "62.50G",
    "4294967296": "4P",
}  # fmt: skip
NO_MEMORY = ["100X", "abc", "", "1 G", "1P", "1.5G", "-1", "1KiB", "1Gi", "5 ", "1GBB", "1B", "9" * 20, "1,5", "0x10"]


@pytest.mark.parametrize("text", LIMITS)
def test_a_time_limit_is_whole_minutes(text: str) -> None:
    assert durations.render_minutes(durations.parse_minutes(text)) == LIMITS[text]


@pytest.mark.parametrize("text", ["", " 5", "5 ", "+5", "٣", *NO_LIMITS])
def test_a_bad_time_limit_is_refused(text: str) -> None:
    with pytest.raises(LangError):
        durations.parse_minutes(text)


def test_an_error_says_where_and_what_was_expected() -> None:
    with pytest.raises(LangError) as caught:
        durations.parse_minutes("1-x")
    assert (caught.value.place, caught.value.expected) == (2, ("number",))


@given(st.integers(1, UNLIMITED - 1))
def test_minutes_survive_rendering(minutes: int) -> None:
    assert durations.parse_minutes(durations.render_minutes(minutes)) == minutes


@given(st.integers(1, UNLIMITED - 1))
def test_seconds_survive_rendering(seconds: int) -> None:
    assert durations.parse_seconds(durations.render_elapsed(seconds)) == seconds


@pytest.mark.parametrize(
    ("seconds", "short", "elapsed"),
    [
        (0, "0:00", "00:00:00"),
        (310, "5:10", "00:05:10"),
        (7510, "2:05:10", "02:05:10"),
        (93784, "1-02:03:04", "1-02:03:04"),
    ],
)
def test_run_times_are_short_in_squeue_and_long_in_scontrol(seconds: int, short: str, elapsed: str) -> None:
    assert (durations.render_short(seconds), durations.render_elapsed(seconds)) == (short, elapsed)


@pytest.mark.parametrize("text", MEMORY)
def test_memory_is_whole_mebibytes(text: str) -> None:
    assert sizes.render_mib(sizes.parse_mib(text)) == MEMORY[text]


@pytest.mark.parametrize("text", NO_MEMORY)
def test_bad_memory_is_refused(text: str) -> None:
    with pytest.raises(LangError):
        sizes.parse_mib(text)


@given(st.integers(0, 40), st.integers(0, 1 << 20))
def test_whole_units_survive_rendering(shift: int, amount: int) -> None:
    mib = amount << min(shift, 20)
    text = sizes.render_mib(mib)
    if "." not in text and text[-1] not in "PE":
        assert sizes.parse_mib(text) == mib


@pytest.mark.parametrize(
    ("amount", "unit", "text"), [(0, "", "0"), (1536, "K", "1.50M"), (12, "K", "12K"), (1024, "K", "1024K")]
)
def test_measured_amounts_have_two_decimals(amount: int, unit: str, text: str) -> None:
    assert sizes.render_rounded(amount, unit) == text


NUMBERS = st.from_regex(r"[0-9]{1,6}(:[0-9]{1,2}){0,3}|[0-9]{1,10}[KMGTkmgt]?[bB]?", fullmatch=True)


@given(NUMBERS)
def test_what_is_read_without_the_grammar_means_what_the_grammar_makes_of_it(text: str) -> None:
    for quick, language in ((durations.parse_minutes, durations._LANGUAGE), (sizes.parse_mib, sizes._LANGUAGE)):
        try:
            wanted = language.parse(text)
        except LangError:
            with pytest.raises(LangError):
                quick(text)
            continue
        if quick is durations.parse_minutes:
            wanted = min(-(-wanted // 60) or UNLIMITED, UNLIMITED)
        assert quick(text) == wanted
