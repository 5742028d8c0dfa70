"""--json and --yaml are written as Slurm's serialisers write them."""

from __future__ import annotations

import json

import yaml
from hypothesis import given
from hypothesis import strategies as st

from slurmbridge.fields.structured import Value, to_json, to_yaml

TEXTS = st.text(st.characters(blacklist_categories=("Cs", "Cc", "Zl", "Zp"), max_codepoint=0x2FF), max_size=120)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abcdef"), inner, max_size=4),
    max_leaves=12,
)


def test_yaml_tags_every_node_and_keeps_sequences_at_their_key() -> None:
    document: Value = {
        "jobs": [{"name": "x", "flags": ["A"], "nodes": "", "size": [], "hold": True, "share": 2.0}],
        "n": 5,
    }
    assert to_yaml(document) == (
        "%YAML 1.1\n--- !!map\n!!str jobs: !!seq\n- !!map\n  !!str name: !!str x\n  !!str flags: !!seq\n  - !!str A\n"
        "  !!str nodes: !!str\n  !!str size: !!seq []\n  !!str hold: !!bool true\n  !!str share: !!float 2.000000\n"
        "!!str n: !!int 5\n...\n\n"
    )


def test_long_texts_fold_at_the_first_blank_behind_column_eighty() -> None:
    line = "sbatch -J runner -N1 -n2 -w n1 -t 30 --mem=200 --comment=c1 --wrap srun sleep 900"
    assert to_yaml({"jobs": [{"submit_line": line}]}).splitlines()[4:6] == [
        "  !!str submit_line: !!str sbatch -J runner -N1 -n2 -w n1 -t 30 --mem=200 --comment=c1",
        "    --wrap srun sleep 900",
    ]


def test_json_escapes_slashes() -> None:
    assert to_json({"a": "/x"}) == '{\n  "a": "\\/x"\n}\n'


@given(VALUES)
def test_both_forms_give_back_what_was_written(value: object) -> None:
    assert json.loads(to_json(value)) == value  # type: ignore[arg-type]


@given(st.dictionaries(st.sampled_from("abcdef"), VALUES, min_size=1))
def test_yaml_gives_back_what_was_written(value: dict[str, object]) -> None:
    assert yaml.safe_load(to_yaml(value)) == value  # type: ignore[arg-type]


@given(value=VALUES)
def test_documents_are_laid_out_as_the_standard_library_does_with_two_blanks(value: object) -> None:
    expected = json.dumps(value, indent=2, ensure_ascii=False).replace("/", "\\/") + "\n"
    assert to_json(value) == expected  # type: ignore[arg-type]


def test_bytes_that_are_no_text_survive_in_a_document() -> None:
    assert to_json({"name": "a\udcff"}) == '{\n  "name": "a\udcff"\n}\n'
