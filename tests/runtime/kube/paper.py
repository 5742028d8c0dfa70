"""A cluster on paper: an API server of pods, services, nodes and events that keeps its objects' rules, and no kubelets.

Names are unique, deletes heed uids and finalizers, versions grow, watches tell everything in order. A test is the kubelet:
it sets the status of pods. Tokens are good for the pod that they were made for, as long as it is there; everybody may do
everything but what is `denied`. `fail` gives the next requests another answer.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import kubernetes.client

from slurmbridge.manifest.rights import asked, is_allowed
from slurmbridge.runtime.kube.api import Api

Object = dict[str, Any]
KINDS = (
    "pods", "services", "nodes", "events", "namespaces", "persistentvolumeclaims", "resourceslices", "devicetaintrules",
)  # fmt: skip


class Paper:
    def __init__(self) -> None:
        self.lock = threading.Condition()
        self.objects: dict[str, dict[str, Object]] = {kind: {} for kind in KINDS}
        self.history: dict[str, list[tuple[int, str, Object]]] = {kind: [] for kind in KINDS}
        self.version = 0
        self.made = "2026-01-01T00:00:00Z"  # when everything was made
        self.created: list[str] = []
        self.fail: Callable[[str, str], tuple[int, str] | None] = lambda method, path: None
        self.is_open = True
        self.tokens: dict[str, Object] = {}
        self.reviews = 0
        self.denied: set[tuple[str, str]] = set()  # verb, resource
        self.release = {"major": "1", "minor": "37"}
        self.groups = ["apps", "resource.k8s.io"]
        self.resources = ["resourceslices", "devicetaintrules"]  # of resource.k8s.io/v1
        self.beyond: list[str] = []  # requests for which the table of rights has nothing

    # ---- the test's hands

    def token(self, pod: str, *, audience: str = "slurmbridge", account: str = "default") -> str:
        """As a kubelet has it projected into this pod."""
        metadata = self.objects["pods"][pod]["metadata"]
        namespace = metadata.get("namespace", "jobs")
        name = f"token-{len(self.tokens)}"
        self.tokens[name] = {
            "pod": pod, "uid": metadata["uid"], "audience": audience, "user": f"system:serviceaccount:{namespace}:{account}",
        }  # fmt: skip
        return name

    def node(self, name: str, ready: str = "True", taints: tuple[str, ...] = ()) -> None:
        status = {"conditions": [{"type": "Ready", "status": ready}]}
        spec = {"taints": [{"key": taint, "effect": "NoExecute"} for taint in taints]}
        self.put("nodes", {"metadata": {"name": name}, "spec": spec, "status": status})

    def status(self, name: str, **status: Any) -> None:
        with self.lock:
            pod = self.objects["pods"][name]
            self.put("pods", {**pod, "status": {**pod.get("status", {}), **status}})

    def run(self, name: str) -> None:
        self.status(name, phase="Running", startTime="2026-01-01T00:00:00Z",
                    containerStatuses=[{"name": "job", "state": {"running": {}}}])  # fmt: skip

    def finish(self, name: str, code: int = 0, reason: str = "", words: str = "") -> None:
        ended = {"exitCode": code, "reason": reason or ("Error" if code else "Completed"), "message": words}
        self.status(name, phase="Failed" if code else "Succeeded", startTime="2026-01-01T00:00:00Z",
                    containerStatuses=[{"name": "job", "state": {"terminated": ended}}])  # fmt: skip
        self._sweep(name)

    def put(self, kind: str, thing: Object) -> Object:
        with self.lock:
            name = thing["metadata"]["name"]
            self.version += 1
            metadata = {"uid": f"uid-{self.version}", "creationTimestamp": self.made, **thing["metadata"]}
            metadata["resourceVersion"] = str(self.version)
            kept = {**thing, "metadata": metadata}
            event = "MODIFIED" if name in self.objects[kind] else "ADDED"
            self.objects[kind][name] = kept
            self._note(kind, event, kept)
            return kept

    def remove(self, kind: str, name: str) -> None:
        with self.lock:
            self.version += 1
            gone = self.objects[kind].pop(name)
            self._note(
                kind, "DELETED", {**gone, "metadata": {**gone["metadata"], "resourceVersion": str(self.version)}}
            )

    def _note(self, kind: str, event: str, thing: Object) -> None:
        self.history[kind].append((self.version, event, thing))
        self.lock.notify_all()

    def _sweep(self, name: str) -> None:
        """A pod that is deleted, free, and was never run or has ended, goes."""
        pod = self.objects["pods"].get(name)
        if pod is None or not pod["metadata"].get("deletionTimestamp") or pod["metadata"].get("finalizers"):
            return
        if pod.get("status", {}).get("phase") in ("Succeeded", "Failed"):
            self.remove("pods", name)

    # ---- requests

    def create(self, kind: str, thing: Object) -> tuple[int, Object]:
        if thing["metadata"]["name"] in self.objects[kind]:
            return 409, {"reason": "AlreadyExists", "message": "exists"}
        self.created.append(thing["metadata"]["name"])
        return 201, self.put(kind, thing)

    def delete(self, kind: str, name: str, body: Object) -> tuple[int, Object]:
        thing = self.objects[kind].get(name)
        if thing is None:
            return 404, {"reason": "NotFound", "message": name}
        if body.get("preconditions", {}).get("uid", thing["metadata"]["uid"]) != thing["metadata"]["uid"]:
            return 409, {"reason": "Conflict", "message": "another uid"}
        if kind != "pods":
            self.remove(kind, name)
            return 200, thing
        metadata = {"deletionTimestamp": "2026-01-01T00:00:00Z", **thing["metadata"]}
        grace = body.get("gracePeriodSeconds", thing.get("spec", {}).get("terminationGracePeriodSeconds", 30))
        metadata["deletionGracePeriodSeconds"] = min(grace, metadata.get("deletionGracePeriodSeconds", grace))
        changed = {**thing, "metadata": metadata}
        if body.get("gracePeriodSeconds") == 0:
            changed["status"] = {**thing.get("status", {}), "phase": "Failed", "containerStatuses": []}
        self.put(kind, changed)
        self._sweep(name)
        return 200, changed

    def patch(self, kind: str, name: str, body: Object) -> tuple[int, Object]:
        thing = self.objects[kind].get(name)
        if thing is None:
            return 404, {"reason": "NotFound", "message": name}
        change = body["metadata"]
        for field in ("uid", "resourceVersion"):
            if change.get(field, thing["metadata"][field]) != thing["metadata"][field]:
                return 409, {"reason": "Conflict", "message": f"another {field}"}
        changed = self.put(kind, _merged(thing, body))
        self._sweep(name)
        return 200, changed

    def review(self, resource: str, body: Object) -> tuple[int, Object]:
        """What an API server says of tokens, of rights and of itself."""
        spec = body.get("spec", {})
        match resource:
            case "tokenreviews":
                self.reviews += 1
                return 201, {**body, "status": self._token_status(spec)}
            case "selfsubjectaccessreviews":
                wish = spec["resourceAttributes"]
                resource = "/".join(filter(None, (wish["resource"], wish.get("subresource", ""))))
                return 201, {**body, "status": {"allowed": (wish["verb"], resource) not in self.denied}}
            case "version":
                return 200, self.release
            case "v1" if self.resources:
                return 200, {"kind": "APIResourceList", "resources": [{"name": name} for name in self.resources]}
            case "apis":
                return 200, {"kind": "APIGroupList", "groups": [{"name": name} for name in self.groups]}
        return 404, {"reason": "NotFound", "message": resource}

    def _token_status(self, spec: Object) -> Object:
        token = self.tokens.get(spec["token"])
        if token is None or token["audience"] not in spec["audiences"]:
            return {"authenticated": False, "error": f"[invalid bearer token {spec['token']}]"}
        pod = self.objects["pods"].get(token["pod"])
        if pod is None or pod["metadata"]["uid"] != token["uid"]:
            return {"authenticated": False, "error": "the pod is gone"}
        known = "authentication.kubernetes.io/pod-"
        extra = {f"{known}name": [token["pod"]], f"{known}uid": [token["uid"]]}
        return {
            "authenticated": True, "audiences": [token["audience"]], "user": {"username": token["user"], "extra": extra},
        }  # fmt: skip

    def listing(self, kind: str, query: dict[str, str]) -> Object:
        items = [thing for thing in self.objects[kind].values() if _selected(thing, query)]
        return {"metadata": {"resourceVersion": str(self.version)}, "items": items}

    def events(self, kind: str, version: int, query: dict[str, str]) -> list[Object]:
        """After a version; an object that the query selects no more is deleted for who watches."""
        shown: dict[str, bool] = {}
        found = []
        for number, event, thing in self.history[kind]:
            name, is_selected = thing["metadata"]["name"], _selected(thing, query)
            was, shown[name] = shown.get(name, False), is_selected and event != "DELETED"
            if number > version and (is_selected or was):
                found.append({"type": event if is_selected else "DELETED", "object": thing})
        return found


OUT_OF = "$deleteFromPrimitiveList/"


def _merged(thing: Object, change: Object) -> Object:
    """As a JSON merge patch does it, and of a strategic one what takes members out of lists."""
    merged = dict(thing)
    for key, value in change.items():
        if value is None:
            merged.pop(key, None)
        elif key.startswith(OUT_OF):
            name = key.removeprefix(OUT_OF)
            merged[name] = [member for member in merged.get(name) or () if member not in value]
        else:
            merged[key] = _merged(merged.get(key) or {}, value) if isinstance(value, dict) else value
    return merged


def _selected(thing: Object, query: dict[str, str]) -> bool:
    for term in filter(None, query.get("labelSelector", "").split(",")):
        name, equals, value = term.replace("!=", "=").partition("=")
        found = thing["metadata"].get("labels", {}).get(name)
        if "!=" in term:
            if found == value:
                return False
        elif found is None or (equals and found != value):
            return False
    for term in filter(None, query.get("fieldSelector", "").split(",")):
        path, _, value = term.replace("!=", "=").partition("=")
        at: Any = thing
        for word in path.split("."):
            at = at.get(word, {})
        if ((at or "") == value) == ("!=" in term):
            return False
    return True


@contextmanager
def paper_cluster() -> Iterator[tuple[Paper, Callable[[], Api]]]:
    """The cluster, and a way to connect to it."""
    paper = Paper()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def answer(self, code: int, body: Object) -> None:
            text = json.dumps(body).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def respond(self) -> None:
            parts = urlsplit(self.path)
            query = {key: values[0] for key, values in parse_qs(parts.query).items()}
            size = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(size)) if size else {}
            if not is_allowed(asked(self.command, parts.path, query)):
                paper.beyond.append(f"{self.command} {self.path}")
            words = parts.path.split("/")
            kind = next((word for word in words[::-1] if word in KINDS), "")
            name = words[-1] if words[-1] != kind else ""
            failed = paper.fail(self.command, parts.path)
            if failed is not None:
                self.answer(failed[0], {"kind": "Status", "message": failed[1]})
            elif not kind:
                with paper.lock:
                    code, found = paper.review(words[-1], body)
                self.answer(code, found)
            elif query.get("watch"):
                self.watch(kind, query)
            else:
                with paper.lock:
                    code, found = self.act(kind, name, query, body)
                self.answer(code, found)

        do_GET = do_POST = do_DELETE = do_PATCH = respond

        def act(self, kind: str, name: str, query: dict[str, str], body: Object) -> tuple[int, Object]:
            match self.command:
                case "POST":
                    return paper.create(kind, body)
                case "DELETE":
                    return paper.delete(kind, name, body)
                case "PATCH":
                    is_strategic = "strategic" in self.headers["Content-Type"]
                    assert is_strategic or OUT_OF not in json.dumps(
                        body
                    )  # the other kind would add a field of that name
                    return paper.patch(kind, name, body)
            if not name:
                return 200, paper.listing(kind, query)
            found = paper.objects[kind].get(name)
            return (200, found) if found is not None else (404, {"reason": "NotFound", "message": name})

        def watch(self, kind: str, query: dict[str, str]) -> None:
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            version = int(query["resourceVersion"])
            self.close_connection = True
            while True:
                with paper.lock:
                    while paper.is_open and paper.version <= version:
                        paper.lock.wait()
                    if not paper.is_open:
                        return
                    events = paper.events(kind, version, query)
                    version = paper.version
                mark = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(version)}}}
                text = b"".join(json.dumps(event).encode() + b"\n" for event in [*events, mark])
                try:
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(text), text))
                except OSError:
                    return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()

    def connect() -> Api:
        configuration = kubernetes.client.Configuration()
        configuration.host = f"http://127.0.0.1:{server.server_port}"
        return Api(configuration)

    try:
        yield paper, connect
    finally:
        with paper.lock:
            paper.is_open = False
            paper.lock.notify_all()
        server.shutdown()
        server.server_close()
        thread.join()
    assert not paper.beyond, f"manifest/rights.py has no row for {paper.beyond}"
