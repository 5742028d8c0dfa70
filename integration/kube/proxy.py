"""An API server that is not at its best: a proxy before the real one, which cuts watches and answers with faults.

It speaks plain HTTP to who asks and has the keys of a kubeconfig itself, so that it sees requests and can answer them. Each
request is passed on over a connection of its own; a fault comes before the request was passed on, or instead of the answer to what was
done: a client cannot know which. A trap makes something happen at a request, before it is passed on or instead of its answer.
"""

import base64
import contextlib
import http.client
import http.server
import json
import random
import socketserver
import ssl
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import yaml

LOST = ("connection", "host", "accept-encoding")
"""Headers that are not passed on. Answers come plain, so that they can be cut anywhere."""


class Fault(NamedTuple):
    code: int  # 0: the connection is cut without an answer
    is_done: bool  # the request is carried out all the same
    reason: str = ""


ANY = (Fault(429, False), Fault(500, False), Fault(500, True), Fault(504, True), Fault(0, False), Fault(0, True))
OF_LISTS = (Fault(410, False, "Expired"),)
OF_WRITES = (Fault(409, False, "Conflict"),)
"""What an API server says whose own try to change the object, or the quota that counts it, came too late."""
KINDS = ("pods", "services", "nodes")


def possible(method: str, path: str) -> tuple[Fault, ...]:
    words = urlsplit(path).path.split("/")
    if "watch=true" in path:  # whose answer has no end
        return tuple(fault for fault in ANY + OF_LISTS if not fault.is_done)
    if method == "GET":
        return ANY + OF_LISTS if words[-1] in KINDS else ANY
    return ANY + OF_WRITES if words[-1] in KINDS[:2] or words[-2] in KINDS[:2] else ANY


@dataclass
class Trap:
    """`spring` is called at requests of that method whose path ends with, or lies below, `kind`, while the trap is set."""

    method: str
    kind: str
    is_done: bool  # spring instead of the answer, else instead of the request
    spring: Callable[[], None]
    is_set: Callable[[], bool]  # else requests pass it


class Proxy:
    """`faults`: the part of requests that is answered with a fault; `watch_s`: how long watches live."""

    def __init__(self, kubeconfig: Path, address: str, seed: int) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self.server = urlsplit(cluster["server"])
        self.context = ssl.create_default_context(cadata=_plain(cluster["certificate-authority-data"]).decode())
        with tempfile.NamedTemporaryFile(suffix=".pem") as keys:  # the ssl module reads keys from files alone
            keys.write(_plain(user["client-certificate-data"]) + b"\n" + _plain(user["client-key-data"]))
            keys.flush()
            self.context.load_cert_chain(keys.name)
        self.faults = 0.0
        self.watch_s: float | None = None
        self.trap: Trap | None = None
        self.done: dict[str, int] = {}
        self._chance = random.Random(seed)
        self._lock = threading.Lock()
        self._listener = _Listener((address, 0), _Request)
        self._listener.proxy = self
        self._thread = threading.Thread(target=self._listener.serve_forever, daemon=True)

    @property
    def kubeconfig(self) -> dict[str, Any]:
        """What a client of the proxy reads."""
        host, port = self._listener.server_address[:2]
        return {
            "apiVersion": "v1", "kind": "Config", "current-context": "proxy", "users": [{"name": "proxy", "user": {}}],
            "clusters": [{"name": "proxy", "cluster": {"server": f"http://{host!s}:{port}"}}],
            "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "proxy"}}],
        }  # fmt: skip

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._listener.shutdown()
        self._listener.server_close()

    def fault(self, method: str, path: str) -> Fault | None:
        """The fault of a request; None: it has luck."""
        with self._lock:
            return self._chance.choice(possible(method, path)) if self._chance.random() < self.faults else None

    def trapped(self, method: str, path: str) -> Trap | None:
        with self._lock:
            trap = self.trap
            if trap is None or not trap.is_set():
                return None
            if trap.method != method or f"/{trap.kind}" not in urlsplit(path).path:
                return None
            return trap

    def count(self, what: str) -> None:
        with self._lock:
            self.done[what] = self.done.get(what, 0) + 1


class _Listener(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 128
    proxy: Proxy

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients are killed: what goes wrong with their connections is no news."""


class _Request(http.server.BaseHTTPRequestHandler):
    server: _Listener
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _pass_on(self) -> None:
        proxy, begun = self.server.proxy, time.monotonic()
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fault, trap = proxy.fault(self.command, self.path), proxy.trapped(self.command, self.path)
        if trap is not None:
            fault = Fault(0, trap.is_done)
            if not trap.is_done:
                trap.spring()
        if fault is not None and not fault.is_done:
            self._refuse(fault)
            return
        headers = {name: value for name, value in self.headers.items() if name.lower() not in LOST}
        host, port = str(proxy.server.hostname), proxy.server.port or 443
        upstream = http.client.HTTPSConnection(host, port, context=proxy.context, timeout=60)
        self.close_connection = True  # unless the answer comes to its end
        with contextlib.suppress(OSError, http.client.HTTPException), contextlib.closing(upstream):
            upstream.request(self.command, self.path, body or None, {**headers, "Connection": "close"})
            answer = upstream.getresponse()
            if fault is not None:
                answer.read()
                if trap is not None:
                    trap.spring()
                self._refuse(fault)
                return
            proxy.count("passed on")
            self._answer(answer, begun, "watch=true" in self.path)
            self.close_connection = False

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _pass_on

    def _answer(self, answer: http.client.HTTPResponse, begun: float, watch: bool) -> None:
        """Head and body as they come; a watch ends, maybe within a line, when its time is over."""
        self.send_response_only(answer.status, answer.reason)
        for name, value in answer.getheaders():
            if name.lower() not in ("connection", "transfer-encoding"):
                self.send_header(name, value)
        whole = answer.length is not None
        if not whole:
            self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        timer = None
        if watch and self.server.proxy.watch_s is not None:
            timer = threading.Timer(max(0.0, begun + self.server.proxy.watch_s - time.monotonic()), self._cut)
            timer.start()
        try:
            while piece := answer.read1(65536):
                self.wfile.write(piece if whole else b"%x\r\n%s\r\n" % (len(piece), piece))
            if not whole:
                self.wfile.write(b"0\r\n\r\n")
        finally:
            if timer is not None:
                timer.cancel()

    def _cut(self) -> None:
        self.server.proxy.count("watch cut")
        with contextlib.suppress(OSError):
            self.connection.shutdown(2)

    def _refuse(self, fault: Fault) -> None:
        code = fault.code
        self.server.proxy.count(f"answered {code}" if code else "cut")
        if not code:
            self.close_connection = True
            return
        said = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "made up", "code": code}
        body = json.dumps({**said, "reason": fault.reason} if fault.reason else said).encode()
        self.send_response_only(code)
        if code == 429:
            self.send_header("Retry-After", "1")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _plain(text: str) -> bytes:
    return base64.b64decode(text)
