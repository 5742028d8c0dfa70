"""Expected values: sbatch 26.05 --begin at 2026-11-29T21:23:32 UTC."""

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmbridge.errors import LangError
from slurmbridge.lang import times

NOW = datetime.datetime(2026, 11, 29, 21, 23, 32, tzinfo=datetime.UTC).timestamp()
MOMENTS = {
    "noon": "2026-11-30T12:00:00", "teatime": "2026-11-30T16:00:00", "fika": "2026-11-30T15:00:00",
    "elevenses": "2026-11-30T11:00:00", "tomorrow": "2026-11-30T00:00:00", "today": "2026-11-29T00:00:00",
    "midnight": "2026-11-30T00:00:00", "NOON": "2026-11-30T12:00:00", "tomorrow noon": "2026-11-30T12:00:00",
    "16:00 tomorrow": "2026-11-30T16:00:00", "23:59": "2026-11-29T23:59:00", "00:00": "2026-11-30T00:00:00",
    "10:30am": "2026-11-30T10:30:00", "3:15 PM": "2026-11-30T15:15:00", "12:34pm": "2026-11-30T12:34:00",
    "12:34AM": "2026-11-30T00:34:00", "2030-01-20": "2030-01-20T00:00:00", "2030-01-20 12:34": "2030-01-20T12:34:00",
    "2030-01-20T12:34:56": "2030-01-20T12:34:56", "2030-01-20-12:34": "2030-01-20T12:34:00",
    "12:34T2030-01-20": "2030-01-20T12:34:00", "2030-01-20T": "2030-01-20T00:00:00", "2030-02-30": "2030-03-02T00:00:00",
    "01/20/30": "2030-01-20T00:00:00", "01.20.30": "2030-01-20T00:00:00", "012030": "2030-01-20T00:00:00",
    "01/20/99": "2099-01-20T00:00:00", "1/2": "2027-01-02T00:00:00", "0102": "2027-01-02T00:00:00",
    "01/20/": "2027-01-20T00:00:00", "01/20/30-12:34": "2030-01-20T12:34:00", "12:34-01/20/30": "2030-01-20T12:34:00",
    "now": "2026-11-29T21:23:32", "now ": "2026-11-29T21:23:32", "now+5": "2026-11-29T21:23:37",
    "now+60seconds": "2026-11-29T21:24:32", "now+5minute": "2026-11-29T21:28:32", "now+5 minutes": "2026-11-29T21:28:32",
    "now + 5": "2026-11-29T21:23:37", "now+5hour": "2026-11-30T02:23:32", "now+5days": "2026-12-04T21:23:32",
    "NOW+5WEEKS": "2027-01-03T21:23:32", "now+5 5": "2026-11-29T21:24:27", "now-1hour": "2026-11-29T20:23:32",
    "uts1900000000": "2030-03-17T17:46:40", "noon12:34": "2026-11-30T12:34:00",
}  # fmt: skip
PLACES = {
    "01/20/2030": 8, "3pm": 1, "yesterday": 0, "uptime+5": 0, "1900000000": 0, "2030-01-20T12:34:56Z": 19, "2030-1-2": 0,
    "2030-13-01": 5, "2030-01-32": 8, "30-01-20": 0, "13/01": 0, "01/32": 3, "01202030": 6, "24:00": 0, "12:60": 3,
    "12:34:60": 6, "5": 1, "05": 2, "12:34xm": 5, "13:34pm": 5, "3:15p": 4, "now+": 3, "now+5min": 4, "now+5m": 4,
    "now+x": 3, "now+-5": 3, "now5": 3, "nowx": 3, "now+5minutesx": 12, "now+5 x": 5, "2030-01-20T5": 12,
    "2030-01-20x": 10, "2030-01": 0, "2030/01/20": 0, "today+5": 5, "2030-01-20+1day": 10, "12:34-1hour": 7,
    "99991231": 0, "123456": 2, "12": 2, "12:3": 4, "1:2:3": 3, "12:34:5": 7, "12:34:": 6, "12:": 3,
    "12:34,2030-01-20": 5, "fikax": 4, "now+1hour+1hour": 9, "now+1day-1hour": 10, "0": -1, "01/20/3": 7, "01/": 3,
    "uts": 0, "TOMORROW": 1, "0/5": -1, "1/0": 1, "1/2/3": 5,
}  # fmt: skip


@pytest.mark.parametrize("text", MOMENTS)
def test_a_moment_is_reckoned_from_now(text: str) -> None:
    assert times.render(times.parse(text, NOW)) == MOMENTS[text]


@pytest.mark.parametrize("text", PLACES)
def test_a_bad_moment_is_refused_at_slurms_place(text: str) -> None:
    with pytest.raises(LangError) as caught:
        times.parse(text, NOW)
    assert caught.value.message == f"Invalid time specification (pos={PLACES[text]}): {text}"


@pytest.mark.parametrize("text", ["", "T", "-"])
def test_no_time_at_all_is_refused_without_a_place(text: str) -> None:
    with pytest.raises(LangError) as caught:
        times.parse(text, NOW)
    assert caught.value.message == ""


@pytest.mark.parametrize(
    ("text", "moment"),
    [("12/25", "2025-12-25T00:00:00"), ("11/28", "2026-11-28T00:00:00"), ("23:59", "2026-11-29T23:59:00")],
)
def test_an_open_date_of_the_past_is_the_last_that_was(text: str, moment: str) -> None:
    assert times.render(times.parse(text, NOW, past=True)) == moment


def test_clock_times_are_local() -> None:
    zone = datetime.timezone(datetime.timedelta(hours=2))
    assert times.parse("2030-01-20T12:00", NOW, zone) == times.parse("2030-01-20T10:00", NOW)
    assert times.render(times.parse("2030-01-20T12:00", NOW, zone), zone) == "2030-01-20T12:00:00"


@given(st.integers(0, 253402300799))
def test_a_moment_survives_rendering(epoch: int) -> None:
    assert times.parse(times.render(epoch), NOW) == epoch


@pytest.mark.parametrize(
    ("style", "offset", "text"),
    [("relative", 60, "21:24:32"), ("relative", 86400, "Tomorr 21:23"), ("relative", -86400, "Ystday 21:23"),
     ("relative", 3 * 86400, "Wed 21:23"), ("relative", -30 * 86400, "30 Oct 21:23"), ("relative", 400 * 86400, "3 Jan 2028"),
     ("%H:%M", 0, "21:23"), ("", 0, "2026-11-29T21:23:32")],
)  # fmt: skip
def test_a_time_format_is_followed(style: str, offset: int, text: str) -> None:
    assert times.render(NOW + offset, style=style, now=NOW) == text


def test_no_moment_is_unknown() -> None:
    assert times.render(None) == "Unknown"
    assert times.render(1e30) == "Unknown"
