"""Expected values: sbatch and srun 26.05."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmbridge.errors import LangError
from slurmbridge.lang import binding, dependencies, distribution, export, filenames, formats, mail, rlimits, signals
from slurmbridge.lang.formats import Column, Literal, NamedColumn
from slurmbridge.model.request import DependencyTerm, Signal

DEPENDENCIES = {
    "singleton": "singleton", "SINGLETON": "singleton", "afterok:5": "afterok:5", "AfterOk:0543": "afterok:543", "5": "afterany:5",
    "afterany:1:2": "afterany:1,afterany:2", "afterok:5+5": "afterok:5+5", "afterok:5_3:6": "afterok:5_3,afterok:6",
    "afterok:5_*": "afterok:5", "afterok: 5": "afterok:5", "afterok:5,afterok:5": "afterok:5", "afterany:5,6": "afterany:5,afterany:6",
    "afterok:1?singleton": "afterok:1?singleton", "singleton?singleton": "singleton", "": "",
}  # fmt: skip
NO_DEPENDENCIES = [
    "singleton:5", "afterok:0", "afterok:-1", "afterok:5_", "afterok:abc", "afterok", "afterok:", "foo:5", "ok:5", "afterok:5,",
    ",afterok:5", "singleton?", "afterok:5 ", " singleton", "afterok:5+", "afterok:5+x", "after:5+0", "none", "afterok:5:",
    "afterok:5::6", "singletonx", "5:6", "afterok:1,afterany:2?after:3", "afterok:5, afterany:6",
]  # fmt: skip


@pytest.mark.parametrize("text", DEPENDENCIES)
def test_dependencies_are_read(text: str) -> None:
    assert dependencies.render(dependencies.parse(text)) == DEPENDENCIES[text]


@pytest.mark.parametrize("text", NO_DEPENDENCIES)
def test_bad_dependencies_are_refused(text: str) -> None:
    with pytest.raises(LangError):
        dependencies.parse(text)


def test_a_whole_array_is_shown_with_a_star() -> None:
    (term,) = dependencies.parse("afterok:5+2").terms
    assert dependencies.render_term(term, is_array=True) == "afterok:5_*+2"


@given(
    st.lists(
        st.builds(
            DependencyTerm,
            kind=st.sampled_from(["after", "afterok", "aftercorr"]),
            job_id=st.integers(1, 9999),
            array_task=st.one_of(st.none(), st.integers(0, 99)),
            minutes=st.integers(0, 99),
        ),
        min_size=2,
        max_size=5,
        unique=True,
    ),
    st.booleans(),
)
def test_dependencies_survive_rendering(terms: Any, any_of: bool) -> None:
    text = ("?" if any_of else ",").join(map(dependencies.render_term, terms))
    found = dependencies.parse(text)
    assert (found.terms, found.any_of, dependencies.render(found)) == (tuple(terms), any_of, text)


SIGNALS = {
    "USR1": (10, 60, False, False), "usr1": (10, 60, False, False), "SigUsr1": (10, 60, False, False), "10@5": (10, 5, False, False),
    "B:USR1@60": (10, 60, True, False), "b:USR1": (10, 60, True, False), "R:USR1": (10, 60, False, True), "BR:TERM@10": (15, 10, True, True),
    "RB:USR1": (10, 60, True, True), "USR1@": (10, 60, False, False), "USR1@0": (10, 0, False, False), "64": (64, 60, False, False),
    " USR1": (10, 60, False, False), "USR1 ": (10, 60, False, False), "USR1@65535": (10, 65535, False, False),
}  # fmt: skip


@pytest.mark.parametrize("text", SIGNALS)
def test_signal_options_are_read(text: str) -> None:
    found = signals.parse_option(text)
    assert (found.number, found.seconds, found.batch_only, found.at_reservation) == SIGNALS[text]


@pytest.mark.parametrize("text", ["bad", "0", "65536", "USR1@x", "USR1@65536", "USR1@-1", "B:", "X:USR1", "BB:USR1", "", "USR", "10x",
                                  "@60", "INT@30@40", "WINCH", "SEGV"])  # fmt: skip
def test_bad_signal_options_are_refused(text: str) -> None:
    with pytest.raises(LangError):
        signals.parse_option(text)


@given(
    st.builds(
        Signal,
        number=st.integers(1, 64),
        seconds=st.integers(0, 65535),
        batch_only=st.booleans(),
        at_reservation=st.booleans(),
    )
)
def test_signal_options_survive_rendering(signal: Any) -> None:
    assert signals.parse_option(signals.render(signal)) == signal


DISTRIBUTIONS = {
    "block": "block", "BLOCK": "block", "plane=4": "plane=4", "block:cyclic:fcyclic": "block:cyclic:fcyclic", "*:block": "*:block",
    "block,nopack": "block,NoPack", "NoPack": "NoPack", "cyclic:": "cyclic", ":block": "*:block", "arbitrary": "arbitrary",
    "block:cyclic:fcyclic,Pack": "block:cyclic:fcyclic,Pack",
}  # fmt: skip


@pytest.mark.parametrize("text", DISTRIBUTIONS)
def test_distributions_are_read(text: str) -> None:
    assert distribution.parse(text) == DISTRIBUTIONS[text]
    assert distribution.parse(distribution.parse(text)) == distribution.parse(text)


@pytest.mark.parametrize("text", ["plane", "plane=0", "plane=x", "plane:4", "plane=4:block", "Pack,block", "block,foo", "foo", "block:plane",
                                  "block:arbitrary", "fcyclic", "", "block:cyclic,NoPack:x", "b", "unknown", "1", "arbitrary:block"])  # fmt: skip
def test_bad_distributions_are_refused(text: str) -> None:
    with pytest.raises(LangError):
        distribution.parse(text)


MAIL = {
    "end": "END", "END,begin": "BEGIN,END", "BEGIN,NONE": "", "NONE": "", "END,FOO": "END", "END,": "END", "END,ARRAY_TASKS": "ARRAY_TASKS,END",
    "ALL": "INVALID_DEPEND,BEGIN,END,FAIL,REQUEUE,STAGE_OUT", "ALL,TIME_LIMIT": "INVALID_DEPEND,BEGIN,END,FAIL,REQUEUE,STAGE_OUT,TIME_LIMIT",
    "TIME_LIMIT_90,TIME_LIMIT_50": "TIME_LIMIT_50,TIME_LIMIT_90",
}  # fmt: skip


@pytest.mark.parametrize("text", MAIL)
def test_mail_types_are_read(text: str) -> None:
    assert ",".join(mail.parse(text)) == MAIL[text]


@pytest.mark.parametrize("text", ["FOO", "", ",", "END BEGIN", "END:BEGIN", "REQUE"])
def test_mail_types_without_a_known_word_are_refused(text: str) -> None:
    with pytest.raises(LangError):
        mail.parse(text)


def test_limits_to_propagate_are_read() -> None:
    assert rlimits.parse("STACK,CORE") == ("STACK", "CORE")
    assert rlimits.parse("RLIMIT_STACK CPU,") == ("STACK", "CPU")
    assert rlimits.parse("ALL") == rlimits.NAMES
    assert rlimits.parse("NONE") == ()


@pytest.mark.parametrize(
    ("text", "name"), [("BAD", "BAD"), ("all", "all"), ("STACK,NONE", "NONE"), ("ALL,STACK", "ALL")]
)
def test_a_bad_limit_is_named(text: str, name: str) -> None:
    with pytest.raises(LangError) as caught:
        rlimits.parse(text)
    assert caught.value.text == name


EXPORTS = {
    "ALL": (True, (), ()), "all": (True, (), ()), "NONE": (False, (), ()), "ALL,A=1": (True, (), (("A", "1"),)),
    "A=1,ALL": (True, (), (("A", "1"),)), "FOO=x,BAR": (False, ("BAR",), (("FOO", "x"),)), "A=": (False, (), (("A", ""),)),
    'A="1,2",B=3': (False, (), (("A", '"1,2"'), ("B", "3"))), "A=b=c": (False, (), (("A", "b=c"),)),
    "A=1\\,2,B=3": (False, ("2",), (("A", "1\\"), ("B", "3"))), "": (False, (), ()), ",": (False, (), ()),
}  # fmt: skip


@pytest.mark.parametrize("text", EXPORTS)
def test_export_lists_are_read(text: str) -> None:
    spec = export.parse(text)
    assert (spec.all, spec.names, spec.settings) == EXPORTS[text]
    assert export.parse(export.render(spec)) == spec


def test_an_open_quote_in_an_export_list_is_refused() -> None:
    with pytest.raises(LangError, match="Improperly formed environment variable"):
        export.parse('A="x,B=1')


GPU_BINDS = ["closest", "CLOSEST", "verbose,closest", "closest,verbose", "none", "single:1", "single:", "per_task:0", "map_gpu:0,1",
             "map_gpu:0*2", "map_gpu:", "map_gpu:0,,1", "mask_gpu:0x1,0x2", "mask_gpu:ff", "map:0"]  # fmt: skip
NO_GPU_BINDS = {
    "verbose": "Invalid --gpu-bind argument: verbose", "single": "Invalid --gpu-bind argument: single", "": "Invalid --gpu-bind argument: ",
    "foo": "Invalid --gpu-bind argument: foo", "map_gpu:0x1": "Failed to validate 0x1, offending character is x",
    "map_gpu:0,x,1": "Failed to validate x, offending character is x", "mask_gpu:zz": "Failed to validate zz, offending character is z",
}  # fmt: skip


@pytest.mark.parametrize("text", GPU_BINDS)
def test_gpu_bindings_are_checked(text: str) -> None:
    binding.check_gpu_bind(text)


@pytest.mark.parametrize("text", NO_GPU_BINDS)
def test_bad_gpu_bindings_are_refused_in_slurms_words(text: str) -> None:
    with pytest.raises(LangError) as caught:
        binding.check_gpu_bind(text)
    assert caught.value.message == NO_GPU_BINDS[text]


@pytest.mark.parametrize(
    "text", ["local", "LOCAL", "q", "v,local", "rank", "map_mem:0*2", "mask_mem:0x1", "prefer", "no", "map_mem:0,1"]
)
def test_memory_bindings_are_checked(text: str) -> None:
    binding.check_mem_bind(text)


@pytest.mark.parametrize(
    "text",
    ["none", "cores", "CORES", "v,none", "cores,sockets", "map_cpu:0,1", "mask_cpu:0x3", "map_ldom:0", "rank_ldom"],
)
def test_cpu_bindings_are_checked(text: str) -> None:
    binding.check_cpu_bind(text)


@pytest.mark.parametrize(("check", "text", "message"), [
    (binding.check_mem_bind, "local,foo", 'unrecognized --mem-bind argument "foo"'),
    (binding.check_mem_bind, "", 'unrecognized --mem-bind argument ""'),
    (binding.check_mem_bind, "map_mem", 'missing list for "--mem-bind=map_mem:<list>"'),
    (binding.check_cpu_bind, "map_cpu:0x1", "Failed to validate number: 0x1, the offending character is x"),
    (binding.check_cpu_bind, "boards", 'unrecognized --cpu-bind argument "boards"'),
])  # fmt: skip
def test_bad_bindings_are_refused_in_slurms_words(check: Any, text: str, message: str) -> None:
    with pytest.raises(LangError) as caught:
        check(text)
    assert caught.value.message == message


VALUES = {"j": "2456", "A": "2456", "a": "4294967294", "x": "12", "u": "alice", "n": "0", "t": "0", "s": "batch"}
PATTERNS = {
    "%j": "2456", "%%j": "%j", "%%%j": "%2456", "%3x": "12", "%12j": "0000002456", "%100j": "0000002456", "%05j": "02456", "%q": "%q",
    "%": "", "a%": "a", "%5": "%5", "%2n.%2t.%2s": "00.00.batch", "%-5j": "%-5j", "%0j": "2456", "a\\%j": "a%j", "a\\b%j": "ab%j",
    "%A_%a": "2456_4294967294", "": "",
}  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
def test_file_name_patterns_expand(pattern: str) -> None:
    assert filenames.expand(pattern, VALUES) == PATTERNS[pattern]


def test_formats_by_letter_are_read() -> None:
    assert formats.parse_letters("id %.18i %9P|%#R") == (
        Literal("id "), Column("i", 18, True, " "), Column("P", 9, False, "|"), Column("R", fit=True),
    )  # fmt: skip


def test_formats_by_name_are_read() -> None:
    assert formats.parse_names("JobID:12,Name:.8x,,State") == (
        NamedColumn("JobID", 12), NamedColumn("Name", 8, "x", right=True), NamedColumn("State"),
    )  # fmt: skip
    assert formats.parse_sacct("Account%-30,JobID,State%20") == (
        NamedColumn("Account", 30, left=True), NamedColumn("JobID"), NamedColumn("State", 20),
    )  # fmt: skip


@given(st.lists(st.builds(Column, letter=st.sampled_from("aBz"), width=st.integers(0, 99), right=st.booleans(),
                          suffix=st.sampled_from(["", " ", "|", ", x"]), fit=st.booleans()), max_size=6).map(tuple))  # fmt: skip
def test_formats_survive_rendering(columns: Any) -> None:
    assert formats.parse_letters(formats.render_letters(columns)) == columns
