"""Expected values: sbatch 26.05 --gres, --gpus, --tres-per-task, -N, --licenses, --constraint; fractions are ours."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmbridge.errors import LangError
from slurmbridge.lang import constraints, gres, licenses, nodes, tres
from slurmbridge.lang.constraints import And, Matching, Name, Or, Xor
from slurmbridge.model.request import GresTerm, LicenseTerm

GRES = {
    ("gpu", "gres"): ("gres/gpu", [("gpu", "", 1000)]),
    ("gpu:2", "gres"): ("gres/gpu:2", [("gpu", "", 2000)]),
    ("gpu=2", "gres"): ("gres/gpu=2", [("gpu", "", 2000)]),
    ("gpu:a", "gres"): ("gres/gpu:a", [("gpu", "a", 1000)]),
    ("gpu:a100:1k", "gres"): ("gres/gpu:a100:1k", [("gpu", "a100", 1024000)]),
    ("gpu:a100=1", "gres"): ("gres/gpu:a100=1", [("gpu", "a100", 1000)]),
    ("gpu:1x", "gres"): ("gres/gpu:1x", [("gpu", "1x", 1000)]),
    ("gpu:-1", "gres"): ("gres/gpu:-1", [("gpu", "-1", 1000)]),
    ("gres/gpu:1", "gres"): ("gres/gpu:1", [("gpu", "", 1000)]),
    ("gpu:1,foo:1", "gres"): ("gres/gpu:1,gres/foo:1", [("gpu", "", 1000), ("foo", "", 1000)]),
    (",gpu:1", "gres"): ("gres/,gres/gpu:1", [("gpu", "", 1000)]),
    ("none", "gres"): ("", []),
    ("gpu:0.5", "gres"): ("gres/gpu:0.5", [("gpu", "", 500)]),
    ("gpu:a100:0.125", "gres"): ("gres/gpu:a100:0.125", [("gpu", "a100", 125)]),
    ("shard:2,mps:50", "gres"): ("gres/shard:2,gres/mps:50", [("shard", "", 2000), ("mps", "", 50000)]),
    ("2", "gpus"): ("gres/gpu:2", [("gpu", "", 2000)]),
    ("a100", "gpus"): ("gres/gpu:a100", [("gpu", "a100", 1000)]),
    ("a100:1,v100:2", "gpus"): ("gres/gpu:a100:1,gres/gpu:v100:2", [("gpu", "a100", 1000), ("gpu", "v100", 2000)]),
    ("gpu:2", "gpus"): ("gres/gpu:gpu:2", [("gpu", "gpu", 2000)]),
    ("0.5", "gpus"): ("gres/gpu:0.5", [("gpu", "", 500)]),
    ("cpu=2,gres/gpu=1", "tres"): ("cpu=2,gres/gpu=1", [("cpu", "", 2000), ("gpu", "", 1000)]),
    ("gres:gpu:a100:1", "tres"): ("gres/gpu:a100:1", [("gpu", "a100", 1000)]),
    ("license/matlab=1", "tres"): ("license/matlab=1", [("license/matlab", "", 1000)]),
}
NO_GRES = [
    ("gpu:", "gres"), ("gpu:a100:", "gres"), ("gpu=a100", "gres"), ("gpu:1.5", "gres"), ("gpu:0.1234", "gres"),
    ("mps:0.5", "gres"), ("a100:x", "gpus"), ("gpu:1", "tres"), ("foo:1", "tres"), ("", "tres"), ("gpu: 1", "gres"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "scope"), GRES)
def test_generic_resources_are_read_by_scope(text: str, scope: Any) -> None:
    request = gres.parse_gres(text, scope)
    assert (request.text, [(term.name, term.type, term.milli) for term in request.terms]) == GRES[text, scope]


@pytest.mark.parametrize(("text", "scope"), NO_GRES)
def test_bad_generic_resources_are_refused(text: str, scope: Any) -> None:
    with pytest.raises(LangError):
        gres.parse_gres(text, scope)


WORD = st.from_regex(r"[a-z][a-z0-9]{0,5}", fullmatch=True)
COUNT = st.one_of(
    st.integers(1, 999).map(lambda milli: ("gpu", milli)),
    st.integers(0, 4096).map(lambda count: ("shard", count * 1000)),
)


@given(st.lists(st.tuples(COUNT, st.one_of(st.just(""), WORD)), min_size=1, max_size=4))
def test_generic_resources_survive_rendering(items: Any) -> None:
    terms = tuple(GresTerm(name=name, type=kind, milli=milli) for (name, milli), kind in items)
    found = gres.parse_gres(gres.render(terms), "gres").terms
    assert [(term.name, term.type, term.milli) for term in found] == [
        (term.name, term.type, term.milli) for term in terms
    ]


def test_tres_counts_are_in_model_units() -> None:
    assert tres.parse_counts("cpu=4,mem=10G,gres/gpu=0.5,gres/gpu:a100=2,node=-1") == (
        ("cpu", 4), ("mem", 10240), ("gres/gpu", 500), ("gres/gpu:a100", 2000), ("node", -1),
    )  # fmt: skip


def test_tres_are_shown_as_scontrol_shows_them() -> None:
    counts = (("cpu", 1), ("mem", 100), ("node", 1), ("billing", 1), ("gres/gpu", 2000), ("gres/gpu:a100", 500))
    assert tres.render(counts) == "cpu=1,mem=100M,node=1,billing=1,gres/gpu=2,gres/gpu:a100=0.5"


@given(
    st.dictionaries(
        st.sampled_from(["cpu", "node", "billing", "gres/gpu", "gres/gpu:a100", "license/x"]), st.integers(-1, 900)
    )
)
def test_tres_survive_rendering(counts: Any) -> None:
    assert tres.parse_counts(tres.render(tuple(counts.items()))) == tuple(counts.items())


NODES = {
    "2": (2, 2, ()), "1-3": (1, 3, ()), "0-2": (0, 2, ()), "2-4:2": (2, 2, (2,)), "1-4:2": (1, 3, (1, 3)),
    "1-5:2": (1, 3, (1, 3)), "1,3": (1, 3, (1, 3)), "4,2": (2, 4, (2, 4)), "2,3-5": (2, 5, (2, 3, 4, 5)),
    "1k": (1024, 1024, ()), "1k-2k": (1024, 2048, ()), " 2": (2, 2, ()), "2 ": (2, 2, ()), "+2": (2, 2, ()), "0": (0, 0, ()),
}  # fmt: skip
NO_NODES = {
    "2-": "Maximum node count -1 is less than minimum node count 2",
    "3-1": "Maximum node count 1 is less than minimum node count 3",
    "abc": '"abc" is not a valid node count', "1-2-3": '"2-3" is not a valid node count', "": '"" is not a valid node count',
    "1-4:0": '"1-4:0" is not a valid node count', "1-4:x": '"x" is not a valid node count',
    "x-2": '"x" is not a valid node count', "1:2": '"1:2" is not a valid node count', "1,2,x": '"x" is not a valid node count',
    "5-2:2": '"5-2:2" is not a valid node count', "2-8:2,3": '"2-8:2,3" is not a valid node count',
    "4294967295": '"4294967295" is not a valid node count',
}  # fmt: skip


@pytest.mark.parametrize("text", NODES)
def test_node_counts_are_read(text: str) -> None:
    found = nodes.parse(text)
    assert (found.min, found.max, found.counts) == NODES[text]
    assert nodes.parse(nodes.render(found)) == found


@pytest.mark.parametrize("text", NO_NODES)
def test_bad_node_counts_are_refused_in_slurms_words(text: str) -> None:
    with pytest.raises(LangError) as caught:
        nodes.parse(text)
    assert caught.value.message == NO_NODES[text]


FEATURES = {
    "a": Name("a"), "a*4": Name("a", 4), "(a)*2": Name("a", 2), "a&b": And((Name("a"), Name("b"))), "a,b": And((Name("a"), Name("b"))),
    "a|b": Or((Name("a"), Name("b"))), "a&b|c": Or((And((Name("a"), Name("b"))), Name("c"))),
    "a|b&c": And((Or((Name("a"), Name("b"))), Name("c"))), "(a&b)|c": Or((And((Name("a"), Name("b"))), Name("c"))),
    "[a|b]": Xor((Name("a"), Name("b"))), "[a]": Xor((Name("a"),)), "a&": Name("a"), "a|": Name("a"),
    "[a*1&b*2]": Matching((Name("a", 1), Name("b", 2))), "a&[b|c]": And((Name("a"), Xor((Name("b"), Name("c"))))),
    "[(a&b)|c]": Xor((And((Name("a"), Name("b"))), Name("c"))), "": And(),
}  # fmt: skip
NO_FEATURES = ["a & b", "[a&b]", "[a*2|b]", "(a", "a)", "[a", "a]", "&a", "|a", "a&&b", "a||b", "a*", "a*0", "a*x", "a*-1",
               "((a&b)|c)", "()", "[]", "{a|b}", "!a", "[a|b]*2", "a*2&b*1", "a b", "a&" * 5000 + "a"]  # fmt: skip


@pytest.mark.parametrize("text", FEATURES)
def test_features_bind_from_left_to_right(text: str) -> None:
    found = constraints.parse(text)
    assert found == FEATURES[text]
    assert constraints.parse(constraints.render(found)) == found


@pytest.mark.parametrize("text", NO_FEATURES)
def test_bad_features_are_refused(text: str) -> None:
    with pytest.raises(LangError):
        constraints.parse(text)


def test_a_node_matches_by_its_own_features() -> None:
    assert constraints.matches(constraints.parse("(a&b)|c"), {"a", "b"})
    assert not constraints.matches(constraints.parse("a&[b|c]"), {"a"})
    assert constraints.matches(constraints.parse(""), set())
    assert constraints.names(constraints.parse("[a*1&b*2]")) == {"a", "b"}
    assert constraints.counts(constraints.parse("[a*1&b*2]")) == ((Name("a"), 1), (Name("b"), 2))
    assert constraints.counts(constraints.parse("(a|b)*3")) == ((Or((Name("a"), Name("b"))), 3),)


LICENSES = {
    "matlab": ([("matlab", 1)], False), "matlab:2,ansys": ([("matlab", 2), ("ansys", 1)], False), "matlab=2": ([("matlab", 2)], False),
    "matlab:1;ansys:1": ([("matlab", 1), ("ansys", 1)], False), "a:1|b:2": ([("a", 1), ("b", 2)], True), ",a,": ([("a", 1)], False),
    "": ([], False), "matlab:0": ([("matlab", 0)], False),
}  # fmt: skip


@pytest.mark.parametrize("text", LICENSES)
def test_licenses_are_read(text: str) -> None:
    terms, any_of = licenses.parse(text)
    assert ([(term.name, term.count) for term in terms], any_of) == LICENSES[text]


@pytest.mark.parametrize(
    "text", ["a:x", "a:-1", "a:1k", "a::1", "a:", "a=", "a:1:2", "a : 1", "a|b,c", "a:99999999999"]
)
def test_bad_licenses_are_refused(text: str) -> None:
    with pytest.raises(LangError):
        licenses.parse(text)


@given(
    st.lists(st.builds(LicenseTerm, name=WORD, count=st.integers(0, 99)), min_size=2, max_size=4).map(tuple),
    st.booleans(),
)
def test_licenses_survive_rendering(terms: Any, any_of: bool) -> None:
    assert licenses.parse(licenses.render(terms, any_of)) == (terms, any_of)
