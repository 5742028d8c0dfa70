"""An HTTP server that gives the answers of a script, one a request, and remembers what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import kubernetes.client

from slurmbridge.manifest.rights import asked, is_allowed
from slurmbridge.runtime.kube.api import Api


@dataclass(frozen=True)
class Answer:
    status: int = 200
    body: Any = None
    lines: Sequence[Any] | None = None  # of a watch, each sent as it is; the answer ends after the last...
    cut: bool = False  # ... or breaks off in the middle of a line
    stay: bool = False  # ... or stays open
    headers: tuple[tuple[str, str], ...] = ()


@dataclass
class Script:
    answers: list[Answer]
    asked: list[tuple[str, str, dict[str, str], Any]] = field(default_factory=list)
    """(method, path, query, body)"""
    over: threading.Event = field(default_factory=threading.Event)
    api: Api = field(init=False)


@contextmanager
def serving(*answers: Answer) -> Iterator[Script]:
    script = Script(list(answers))
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def _respond(self) -> None:
            parts = urlsplit(self.path)
            size = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(size)) if size else None
            with lock:
                query = {key: values[0] for key, values in parse_qs(parts.query).items()}
                script.asked.append((self.command, parts.path, query, body))
                answer = script.answers.pop(0) if script.answers else Answer(lines=(), stay=True)
            self.send_response(answer.status)
            for name, value in answer.headers:
                self.send_header(name, value)
            if answer.lines is None:
                text = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)
                return
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for line in answer.lines:
                self._chunk(json.dumps(line).encode() + b"\n")
            if answer.stay:
                script.over.wait()
            if answer.cut:
                self._chunk(b'{"type": "ADD')
            else:
                self.wfile.write(b"0\r\n\r\n")
            if answer.cut or answer.stay:
                self.close_connection = True

        def _chunk(self, text: bytes) -> None:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(text), text))
            self.wfile.flush()

        do_GET = do_POST = do_DELETE = do_PATCH = _respond

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    script.api = Api(kubernetes.client.Configuration(host=f"http://127.0.0.1:{server.server_address[1]}"))
    try:
        yield script
    finally:
        script.over.set()
        script.api.close()
        server.shutdown()
        server.server_close()
        thread.join()
    for method, path, query, _ in script.asked:
        assert is_allowed(asked(method, path, query)), f"the table of rights has nothing for {method} {path}"


def pod(name: str, version: int, *, uid: str = "", phase: str = "Running") -> dict[str, Any]:
    metadata = {"name": name, "namespace": "jobs", "uid": uid or name, "resourceVersion": str(version)}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "status": {"phase": phase}}


def page(version: int, *pods: dict[str, Any], more: str = "") -> Answer:
    return Answer(
        body={"kind": "PodList", "metadata": {"resourceVersion": str(version), "continue": more}, "items": list(pods)}
    )


def event(kind: str, item: dict[str, Any]) -> dict[str, Any]:
    return {"type": kind, "object": item}


def status(code: int, reason: str = "", message: str = "", seconds: int = 0) -> dict[str, Any]:
    details = {"retryAfterSeconds": seconds} if seconds else None
    return {
        "kind": "Status",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
        "details": details,
    }
