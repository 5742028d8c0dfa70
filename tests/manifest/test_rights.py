"""The table of rights: what the daemon asks for, and nothing besides."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from slurmbridge.manifest.rights import EVERYBODYS, RIGHTS, Asked, Right, Where, asked, covers, is_allowed, rules

PACKAGE = Path(__file__).resolve().parents[2] / "slurmbridge"
PODS = "/api/v1/namespaces/jobs/pods"


@pytest.mark.parametrize(
    ("method", "path", "query", "request_"),
    [
        ("GET", PODS, {}, Asked(verb="list", resource="pods", namespace="jobs")),
        ("GET", PODS, {"watch": "true"}, Asked(verb="watch", resource="pods", namespace="jobs")),
        ("GET", f"{PODS}/a", {}, Asked(verb="get", resource="pods", namespace="jobs")),
        ("GET", f"{PODS}/a/log", {}, Asked(verb="get", resource="pods/log", namespace="jobs")),
        ("POST", PODS, {}, Asked(verb="create", resource="pods", namespace="jobs")),
        ("PATCH", f"{PODS}/a", {}, Asked(verb="patch", resource="pods", namespace="jobs")),
        ("DELETE", f"{PODS}/a", {}, Asked(verb="delete", resource="pods", namespace="jobs")),
        ("DELETE", PODS, {}, Asked(verb="deletecollection", resource="pods", namespace="jobs")),
        ("GET", "/api/v1/pods", {}, Asked(verb="list", resource="pods")),
        ("GET", "/api/v1/nodes/n1", {}, Asked(verb="get", resource="nodes")),
        ("PUT", "/api/v1/nodes/n1", {}, Asked(verb="update", resource="nodes")),
        ("GET", "/api/v1/namespaces/jobs", {}, Asked(verb="get", resource="namespaces", namespace="jobs")),
        ("GET", "/version", {}, Asked(verb="get", resource="")),
        ("GET", "/apis/resource.k8s.io/v1", {}, Asked(verb="get", resource="")),
        (
            "POST", "/apis/authentication.k8s.io/v1/tokenreviews", {},
            Asked(verb="create", resource="tokenreviews", group="authentication.k8s.io"),
        ),
    ],
)  # fmt: skip
def test_a_request_is_read_as_an_api_server_reads_it(
    method: str, path: str, query: dict[str, str], request_: Asked
) -> None:
    assert asked(method, path, query) == request_


def test_no_row_of_the_table_says_what_another_says() -> None:
    keys = [(right.where, right.group, right.resource, verb) for right in RIGHTS for verb in right.verbs]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize("right", RIGHTS, ids=lambda right: f"{right.where.value}-{right.resource}")
def test_a_right_is_least(right: Right) -> None:
    assert list(right.verbs) == sorted(set(right.verbs)) and right.why
    assert "*" not in (*right.verbs, right.resource, right.group)
    assert right.resource.partition("/")[0] not in ("secrets", "configmaps", "roles", "rolebindings", "clusterroles")
    assert right.resource not in ("pods/exec", "pods/attach", "pods/portforward", "pods/ephemeralcontainers")
    assert not {"escalate", "bind", "impersonate", "deletecollection", "update"} & set(right.verbs)


def test_nothing_is_written_outside_the_namespace_of_the_jobs_but_that_a_node_is_drained() -> None:
    writing = {"create", "delete", "patch", "update"}
    outside = {
        (verb, right.resource)
        for right in RIGHTS
        if right.where is Where.CLUSTER
        for verb in writing & set(right.verbs)
    }
    assert outside == {("create", "tokenreviews"), ("patch", "nodes")}


def test_a_right_in_a_namespace_is_none_in_all() -> None:
    everywhere = asked("GET", "/api/v1/services")
    assert not any(covers(right, everywhere) for right in RIGHTS) and not is_allowed(everywhere)


def test_everybody_may_ask_what_he_may() -> None:
    request = asked("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")
    assert (request.verb, request.group, request.resource) in EVERYBODYS and is_allowed(request)


def test_rules_are_all_rows_of_a_place() -> None:
    assert len(rules(Where.JOBS)) + len(rules(Where.CLUSTER)) == len(RIGHTS)


def resources_named_in(path: Path) -> set[str]:
    """The last word of each path of the API that a module's texts spell out."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        else:
            continue
        words = text.split("/")
        if text.startswith(("/api/v1/", "/apis/")):
            found |= {word for word in words[3 if words[1] == "api" else 4 :] if word.islower() and word.isalpha()}
    return found


def test_every_resource_that_the_code_names_is_in_the_table() -> None:
    """Paths as they are written in the code; what is asked of them is checked where the tests' servers are asked."""
    named = set().union(*(resources_named_in(path) for path in (PACKAGE / "runtime/kube").rglob("*.py")))
    known = {part for right in RIGHTS for part in right.resource.split("/")} | {key[2] for key in EVERYBODYS}
    assert named and named <= known, f"rows are missing in manifest/rights.py: {named - known}"
