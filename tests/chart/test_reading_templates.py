"""The reader of templates: what it knows it renders as Go does, what it does not know it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from k8s.gotemplate import Templates, Wrong
from k8s.render import merged
from k8s.schema import problems

SCOPE: dict[str, Any] = {"a": {"b": "text", "n": 3, "off": False, "many": ["x", "y"], "map": {"q": 1, "p": 2}}}


def rendered(text: str) -> str:
    templates = Templates()
    return templates.render(templates.read(text), SCOPE)


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("plain", "plain"),
        ("{{ .a.b }}", "text"),
        ("{{ .a.n }} {{ .a.off }} {{ .a.none }}|", "3 false |"),
        ("one\n  {{- .a.b }}", "onetext"),
        ("{{ .a.b -}}  \n two", "texttwo"),
        ("{{ .a.b | quote }}", '"text"'),
        ("{{ .a.none | default .a.b | trunc 2 }}", "te"),
        ("{{ default (trunc 1 .a.b) .a.none }}", "t"),
        ("{{ if .a.off }}yes{{ else }}no{{ end }}", "no"),
        ("{{ if and .a.b (not .a.off) }}yes{{ end }}", "yes"),
        ("{{ if or .a.off .a.none }}yes{{ end }}", ""),
        ("{{ with .a.map }}{{ .p }}{{ $.a.n }}{{ end }}", "23"),
        ("{{ range .a.many }}<{{ . }}>{{ end }}", "<x><y>"),
        ("{{ range $k, $v := .a.map }}{{ $k }}={{ $v }};{{ end }}", "p=2;q=1;"),
        ('{{ define "x" }}[{{ .n }}]{{ end }}{{ include "x" .a }}', "[3]"),
        ("x:{{ toYaml .a.map | nindent 2 }}", "x:\n  p: 2\n  q: 1"),
        ("{{ list .a.n .a.b | toJson }}", '[3,"text"]'),
        ('{{ hasKey .a.map "q" }}', "true"),
        ('{{ trimSuffix "xt" .a.b }}', "te"),
    ],
)
def test_what_is_known_is_rendered(text: str, result: str) -> None:
    assert rendered(text) == result


@pytest.mark.parametrize(
    "text",
    [
        "{{ if .a }}",
        "{{ end }}",
        "{{ unheard .a }}",
        "{{ .a | unheard }}",
        "{{ $x }}",
        "{{ (.a }}",
        "{{ .a ) }}",
        "{{ ~ }}",
    ],
)
def test_what_is_not_known_is_refused(text: str) -> None:
    with pytest.raises(Wrong):
        rendered(text)


@pytest.mark.parametrize(
    ("base", "over", "result"),
    [
        ({"a": 1}, {}, {"a": 1}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 3}}, {"a": {"b": 3, "c": 2}}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"a": 1, "b": 2}, {"a": None}, {"b": 2}),
        ({}, {"a": None}, {"a": None}),
    ],
)
def test_values_are_laid_over_values(base: Any, over: Any, result: Any) -> None:
    assert merged(base, over) == result


def test_a_schema_with_a_keyword_that_is_not_known_is_an_error() -> None:
    with pytest.raises(ValueError, match="oneOf"):
        list(problems({}, {"oneOf": []}))
