"""An API server that is not at its best: a proxy before the real one, which cuts watches and answers with faults.

It speaks plain HTTP to who asks and has the keys of a kubeconfig itself, so that it sees requests and can answer them. Each
request is passed on over a connection of its own; a fault comes before the request was passed on, or instead of the answer to what was
done: a client cannot know which.
"""

import base64
import contextlib
import http.client
import http.server
import random
import socketserver
import ssl
import tempfile
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

LOST = ("connection", "host", "accept-encoding")
"""Headers that are not passed on. Answers come plain, so that they can be cut anywhere."""


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

    def fault(self) -> tuple[int, bool] | None:
        """The fault of a request, and whether the request is done all the same; None: it has luck."""
        with self._lock:
            if self._chance.random() >= self.faults:
                return None
            code = self._chance.choice((429, 500))
            return code, code == 500 and self._chance.random() < 0.5

    def count(self, what: str) -> None:
        with self._lock:
            self.done[what] = self.done.get(what, 0) + 1


class _Listener(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 128
    proxy: Proxy


class _Request(http.server.BaseHTTPRequestHandler):
    server: _Listener
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _pass_on(self) -> None:
        proxy, begun = self.server.proxy, time.monotonic()
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fault = proxy.fault()
        if fault is not None and not fault[1]:
            self._refuse(fault[0])
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
                self._refuse(fault[0])
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

    def _refuse(self, code: int) -> None:
        self.server.proxy.count(f"answered {code}")
        body = b'{"kind":"Status","apiVersion":"v1","status":"Failure","message":"made up","code":%d}' % code
        self.send_response_only(code)
        if code == 429:
            self.send_header("Retry-After", "1")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _plain(text: str) -> bytes:
    return base64.b64decode(text)
