"""Expected words and complaints: sbatch 26.05."""

import shlex
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmbridge.lang import directives

LINES = {
    " -n2": ["-n2"], "-n2": ["-n2"], "\t-n2  -J x ": ["-n2", "-J", "x"], " -n2#x": ["-n2"], " -J a#b": ["-J", "a"],
    ' -J "a"#b': ["-J", "a"], ' -J "a # b"': ["-J", "a # b"], ' -J a"b c"d': ["-J", "ab cd"], " -J 'a\"b'": ["-J", 'a"b'],
    " -J a\\ b": ["-J", "a b"], " -J a\\#b": ["-J", "a#b"], " -J 'a\\'b'": ["-J", "a'b"], ' -J "a\\nb"': ["-J", "anb"],
    " -J a\\\\": ["-J", "a\\"], " -n2 \\": ["-n2"], ' -J "" -n2': ["-J"], ' --comment="" -n2': ["--comment=", "-n2"],
    ' -n2 # "unclosed': ["-n2"], "": [], " # -n2": [], " -J a;b": ["-J", "a;b"], " -n2 hetjob -n5": ["-n2"],
    " hetjobx": ["hetjobx"], ' "hetjob"': ["hetjob"], " -t 1:00": ["-t", "1:00"], " -J a\rb": ["-J", "a", "b"],
}  # fmt: skip
BROKEN = {
    ' --job-name="a b': ([], 'Unmatched `"` in [--job-name="a b]'),
    ' -J "a\\"b': (["-J"], 'Unmatched `"` in [ "a\\"b]'),
    " -J 'a b": (["-J"], "Unmatched `'` in [ 'a b]"),
    ' -n1 a"b': (["-n1"], 'Unmatched `"` in [ a"b]'),
    " :": ([], "Unexpected `:` in [:]"),
    " -n1 : -n2": (["-n1"], "Unexpected `:` in [ : -n2]"),
}


def words(directive: Any) -> list[str]:
    return [token.text for token in directive.tokens]


@pytest.mark.parametrize("text", LINES)
def test_a_line_is_split_by_sbatchs_quoting(text: str) -> None:
    (directive,) = directives.read_script(f"#!/bin/sh\n#SBATCH{text}\n".encode()).directives
    assert (words(directive), directive.error) == (LINES[text], "")


@pytest.mark.parametrize("text", BROKEN)
def test_a_broken_line_is_reported_in_slurms_words(text: str) -> None:
    (directive,) = directives.read_script(f"#!/bin/sh\n#PBS{text}\n".encode()).directives
    assert (words(directive), directive.error) == BROKEN[text]


def test_every_word_knows_its_place() -> None:
    script = directives.read_script('#!/bin/sh\n\n#SBATCH -J "ü b"  -n2\n'.encode())
    assert [(token.text, token.line, token.column) for token in script.directives[0].tokens] == [
        ("-J", 3, 9),
        ("ü b", 3, 12),
        ("-n2", 3, 19),
    ]


def test_directives_end_at_the_first_command() -> None:
    script = directives.read_script(b"#!/bin/sh\n# c\n\n  # d\n \t\n#SBATCH -n2\nset -e\n#SBATCH -n7\n")
    assert [words(directive) for directive in script.directives] == [["-n2"]]
    assert script.body_line == 7


@pytest.mark.parametrize("line", ["##SBATCH -n2", " #SBATCH -n2", "#sbatch -n2", "# SBATCH -n2"])
def test_lines_that_only_look_like_directives_are_comments(line: str) -> None:
    assert directives.read_script(f"#!/bin/sh\n{line}\n".encode()).directives == ()


def test_hetjob_lines_begin_components() -> None:
    script = directives.read_script(
        b"#!/bin/sh\n#SBATCH -n1\n#SBATCH hetjob x\n#BRIDGE --gpu-fraction=0.5\n#PBS -N a\n#SBATCH PackJob\n#SBATCH -n3\n"
    )
    assert script.components == 3
    assert [(directive.kind, directive.component) for directive in script.directives] == [
        ("SBATCH", 0), ("BRIDGE", 1), ("PBS", 0), ("SBATCH", 2),
    ]  # fmt: skip
    assert script.warnings == (directives.PACKJOB_WARNING,)


@pytest.mark.parametrize(
    ("data", "problem"),
    [(b"", "empty"), (b" \n\t", "whitespace"), (b"hostname\n", "no_shebang"), (b"\n#!/bin/sh\n", "no_shebang"),
     (b"\xef\xbb\xbf#!/bin/sh\n", "no_shebang"), (b"#!/bin/sh\nx\0\n", "nul"), (b"#!/bin/sh\nx\r\n", "dos"), (b"#! /bin/sh\n", None)],
)  # fmt: skip
def test_a_script_that_is_none_is_told(data: bytes, problem: str) -> None:
    assert directives.read_script(data).problem == problem


def quoted(word: str) -> str:
    return '"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"'


@given(st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), min_size=1), max_size=6))
def test_quoted_words_come_back_as_they_were(texts: list[str]) -> None:
    script = directives.read_script(("#!/bin/sh\n#SBATCH " + " ".join(map(quoted, texts)) + "\n").encode())
    assert words(script.directives[0]) == texts


def test_a_new_script_of_ten_lines_costs_a_few_times_its_words_and_a_known_one_next_to_nothing() -> None:
    def script(number: int) -> bytes:
        lines = "".join(f"#SBATCH --option{line}=value{number} # why\n" for line in range(10))
        return f"#!/bin/sh\n{lines}hostname\n".encode()

    directives.read_script(script(0))
    words = min(_seconds(shlex.split, script(1).decode()) for _ in range(30))
    fresh = min(_seconds(directives.read_script, script(number)) for number in range(1, 30))
    known = min(_seconds(directives.read_script, script(1)) for _ in range(30))
    assert fresh < 10 * words
    assert known < fresh / 10


def _seconds(read: Callable[[Any], object], script: str | bytes) -> float:
    began = time.process_time()
    read(script)
    return time.process_time() - began


@given(
    st.lists(
        st.sampled_from(
            [
                ":",
                "a:b",
                "hetjob",
                "HetJob",
                "packjob",
                "-n",
                "--time=1:00",
                "'",
                '"',
                "#",
                "\\",
                "é",
                " ",
                "\t",
                "\x85",
                "\x1f",
                "word",
            ]
        )
    ).map("".join)
)
def test_a_plain_line_is_what_the_grammar_makes_of_it(text: str) -> None:
    assert directives._read_line(text.encode()) == directives._by_grammar(text)
