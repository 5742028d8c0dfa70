"""Requests to an API server: the official client's configuration and connections, our own paths, bodies and faults.

The official client knows every way to find a cluster (kubeconfig files, service accounts, tokens that are renewed, cloud
plugins) and how to speak TLS with it; its classes for objects are not used. Calls block: they are made in threads.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any
from urllib.parse import urlencode

import kubernetes.client
import kubernetes.config
import msgspec
import urllib3

from slurmbridge.runtime.kube.counting import GOOD, Counts
from slurmbridge.runtime.kube.faults import ApiFault, Kind, from_answer

CONNECT = 10.0
"""Seconds within which a connection has to be there."""
ANSWER = 60.0
"""Seconds without a byte after which an answer is given up; the server itself ends a request after as many."""
CONNECTIONS = 32
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
"""Knows lists that are sets: what one adds or takes out leaves what others put there (Kubernetes, "Update API Objects in
Place Using kubectl patch")."""

Query = Mapping[str, str | int]


class Api:
    """One cluster's API server. Threads may share it."""

    def __init__(self, configuration: kubernetes.client.Configuration, *, agent: str = "slurmbridge") -> None:
        configuration.connection_pool_maxsize = CONNECTIONS
        configuration.retries = False  # what is tried again, and when, is decided by who asks
        self._configuration = configuration
        self._client = kubernetes.client.ApiClient(configuration)
        self._pool: urllib3.PoolManager = self._client.rest_client.pool_manager
        self._agent = agent
        self.counts = Counts()

    @classmethod
    def find(cls, kubeconfig: str | None = None, context: str | None = None) -> Api:
        """By file and context; without a file, the service account of the pod we run in, else the user's own file."""
        configuration = kubernetes.client.Configuration()
        try:
            if kubeconfig is None:
                try:
                    kubernetes.config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
                    return cls(configuration)
                except kubernetes.config.ConfigException:
                    pass  # not in a pod
            kubernetes.config.load_kube_config(  # type: ignore[no-untyped-call]
                kubeconfig, context, client_configuration=configuration
            )
        except (kubernetes.config.ConfigException, OSError) as error:
            raise ApiFault(Kind.FORBIDDEN, f"no cluster: {error}") from error
        return cls(configuration)

    @property
    def server(self) -> str:
        return str(self._configuration.host)

    def close(self) -> None:
        self._pool.clear()

    # one answer

    def get(self, path: str, query: Query | None = None) -> bytes:
        return self.request("GET", path, query=query, packed=True)

    def create(self, path: str, manifest: Mapping[str, Any]) -> bytes:
        return self.request("POST", path, body=manifest)

    def patch(self, path: str, change: Mapping[str, Any], *, kind: str = MERGE_PATCH) -> bytes:
        return self.request("PATCH", path, body=change, kind=kind)

    def delete(self, path: str, *, uid: str = "", grace: int | None = None) -> bytes:
        """Delete an object; with a uid only that one, never a later one of the same name."""
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
        if uid:
            options["preconditions"] = {"uid": uid}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        return self.request("DELETE", path, body=options)

    def request(
        self, method: str, path: str, *, query: Query | None = None, body: Mapping[str, Any] | None = None,
        kind: str = "application/json", packed: bool = False,
    ) -> bytes:  # fmt: skip
        """The body of a good answer; anything else is an ApiFault."""
        with self._counted(method, path, query, body, kind, ANSWER, packed) as answer:
            try:
                return answer.read(decode_content=True)
            except (urllib3.exceptions.HTTPError, OSError) as error:
                raise ApiFault(Kind.DOWN, f"{self.server}: {error}") from error

    def date(self) -> str:
        """The server's clock, as a header of HTTP says it; empty: it does not."""
        with self._counted("GET", "/version", None, None, "", ANSWER) as answer:
            answer.drain_conn()
            return str(answer.headers.get("Date", ""))

    # many lines

    def watch(self, path: str, query: Query, *, silence: float) -> Stream:
        """The lines of a watch as they come, until the server ends it; a fault when nothing came for `silence` seconds."""
        return Stream(self._counted("GET", path, {**query, "watch": "true"}, None, "", silence), self.server)

    def _counted(
        self, method: str, path: str, query: Query | None, body: Mapping[str, Any] | None, kind: str, silence: float,
        packed: bool = False,
    ) -> urllib3.BaseHTTPResponse:  # fmt: skip
        """The answer's head; an answer that breaks off later counts as a good one."""
        try:
            answer = self._open(method, path, query, body, kind, silence, packed)
        except ApiFault as fault:
            self.counts.add(method, path, query, fault.kind.value)
            raise
        self.counts.add(method, path, query, GOOD)
        return answer

    def _open(
        self,
        method: str,
        path: str,
        query: Query | None,
        body: Mapping[str, Any] | None,
        kind: str,
        silence: float,
        packed: bool = False,
    ) -> urllib3.BaseHTTPResponse:
        headers = {"Accept": "application/json", "User-Agent": self._agent}
        if packed:  # a list comes plain in pieces of one object each, which cost more to read than unpacking does
            headers["Accept-Encoding"] = "gzip"
        if body is not None:
            headers["Content-Type"] = kind
        # a token may have a short life: the configuration renews it when it is asked for it
        token = self._configuration.get_api_key_with_prefix("BearerToken", alias="authorization")
        if token:
            headers["Authorization"] = token
        url = f"{self.server}{path}" + (f"?{urlencode(query)}" if query else "")
        try:
            answer = self._pool.request(
                method, url, body=None if body is None else msgspec.json.encode(body), headers=headers,
                preload_content=False, redirect=False, retries=False, timeout=urllib3.Timeout(connect=CONNECT, read=silence),
            )  # fmt: skip
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise ApiFault(Kind.DOWN, f"{self.server}: {error}") from error
        if 200 <= answer.status < 300:
            return answer
        try:
            text = answer.read(decode_content=True)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise ApiFault(Kind.DOWN, f"{self.server}: {error}", code=answer.status) from error
        finally:
            answer.release_conn()
        raise from_answer(answer.status, text, answer.headers.get("Retry-After"))


class Stream:
    """Lines of a long answer, in batches: all that came together is given together."""

    def __init__(self, answer: urllib3.BaseHTTPResponse, server: str) -> None:
        self._answer, self._server = answer, server
        self._interrupted = threading.Event()

    def __enter__(self) -> Stream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __iter__(self) -> Iterator[list[bytes]]:
        rest: list[bytes] = []  # pieces of a line that is not complete
        try:
            for piece in self._answer.stream(amt=1 << 20):
                head, newline, tail = piece.rpartition(b"\n")
                if not newline:
                    rest.append(piece)
                    continue
                lines = b"".join([*rest, head]).split(b"\n")
                rest = [tail] if tail else []
                yield [line for line in lines if line]
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            if not self._interrupted.is_set():
                raise ApiFault(Kind.DOWN, f"{self._server}: {error}") from error

    def interrupt(self) -> None:
        """End the wait of the thread that reads; for other threads."""
        self._interrupted.set()
        try:
            self._answer.shutdown()
        except (OSError, ValueError, RuntimeError):
            pass  # it had come to its end

    def close(self) -> None:
        """For the thread that reads. An answer that was not read to its end takes its connection along."""
        self._answer.close()
