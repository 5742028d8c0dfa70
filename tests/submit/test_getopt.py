"""Rules of getopt_long as Slurm's commands follow them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmbridge.model.verdict import UsageError
from slurmbridge.submit.getopt import Arg, Opt, Parsed, parse

OPTS = (
    Opt("hold", "H"),
    Opt("job-name", "J", Arg.REQUIRED),
    Opt("nice", "", Arg.OPTIONAL),
    Opt("no-kill", "k", Arg.OPTIONAL),
    Opt("no-requeue"),
    Opt("nodes", "N", Arg.REQUIRED),
    Opt("time", "t", Arg.REQUIRED),
    Opt("time-min", "", Arg.REQUIRED),
)


def read(*words: str, permute: bool = False) -> Parsed:
    answer = parse(OPTS, ("sbatch", *words), permute=permute)
    assert isinstance(answer, Parsed)
    return answer


def pairs(parsed: Parsed) -> list[tuple[str, str | None]]:
    return [(given.key, given.value) for given in parsed.options]


def test_a_value_may_be_joined_or_follow() -> None:
    assert pairs(read("-Ja", "-J", "b", "--job-name=c", "--job-name", "d")) == [("job-name", x) for x in "abcd"]


def test_short_options_join_and_the_last_may_take_a_value() -> None:
    assert pairs(read("-HJ", "joined")) == [("hold", None), ("job-name", "joined")]


def test_an_optional_value_never_is_the_next_word() -> None:
    parsed = read("--nice", "5", "-k")
    assert pairs(parsed) == [("nice", None)]
    assert parsed.operands == ("5", "-k")


def test_a_long_option_may_be_cut_while_it_is_unambiguous() -> None:
    assert pairs(read("--job=x", "--time-m=5")) == [("job-name", "x"), ("time-min", "5")]


def test_a_whole_name_is_never_ambiguous() -> None:
    assert pairs(read("--time=5")) == [("time", "5")]


def test_without_permutation_the_first_operand_ends_the_options() -> None:
    assert read("-H", "job.sh", "-J", "x").operands == ("job.sh", "-J", "x")


def test_with_permutation_operands_may_stand_anywhere() -> None:
    parsed = read("a", "-H", "b", "--", "-J", permute=True)
    assert parsed.operands == ("a", "b", "-J")
    assert parsed.has("hold")


def test_a_required_value_may_look_like_an_option() -> None:
    assert read("-J", "--hold").last("job-name") == "--hold"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--foo=1"], "unrecognized option '--foo=1'"),
        (["-Y"], "invalid option -- 'Y'"),
        (["-HY"], "invalid option -- 'Y'"),
        (["--no"], "option '--no' is ambiguous; possibilities: '--no-kill' '--no-requeue' '--nodes'"),
        (["--ti=5"], "option '--ti=5' is ambiguous; possibilities: '--time' '--time-min'"),
        (["--nodes"], "option '--nodes' requires an argument"),
        (["--node"], "option '--nodes' requires an argument"),
        (["-N"], "option requires an argument -- 'N'"),
        (["--hold=1"], "option '--hold' doesn't allow an argument"),
    ],
    ids=lambda value: "_".join(value) if isinstance(value, list) else "",
)
def test_mistakes_are_worded_like_the_c_library(words: list[str], message: str) -> None:
    answer = parse(OPTS, ("sbatch", *words), exit_code=255)
    assert isinstance(answer, UsageError)
    assert answer.lines == (f"sbatch: {message}", 'Try "sbatch --help" for more information')
    assert answer.exit_code == 255


@given(st.lists(st.text(alphabet="-HJkN=ab: ", max_size=6), max_size=8), st.booleans())
def test_no_words_make_it_raise(words: list[str], permute: bool) -> None:
    assert isinstance(parse(OPTS, ("x", *words), permute=permute), Parsed | UsageError)


@given(st.lists(st.tuples(st.sampled_from(OPTS), st.text(max_size=5))))
def test_what_is_written_in_full_is_read_back(typed: list[tuple[Opt, str]]) -> None:
    words = [f"--{opt.long}" + ("" if opt.arg is Arg.NONE else f"={text}") for opt, text in typed]
    assert pairs(read(*words)) == [(opt.long, None if opt.arg is Arg.NONE else text) for opt, text in typed]
