"""The keys of one cluster: an authority, certificates that it signed, and a kubeconfig for each user.

Kubernetes takes a client certificate's common name for the user and its organisations for the groups (Kubernetes
reference, "X509 client certificates"), so a user may be added at any time and nothing is restarted.
"""

import base64
import json
from dataclasses import dataclass
from pathlib import Path

from .places import API_PORT
from .processes import run

DAYS = "365"
NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", DAYS)
SERVICE_ADDRESS = "10.96.0.1"  # of the service "kubernetes", the first of the services' network
SERVER_NAMES = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)


@dataclass(frozen=True)
class Keys:
    folder: Path
    address: str  # where the API server listens

    def make(self) -> None:
        """The authority, the API server's own keys, and the key that signs service accounts' tokens."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o700)
        authority = self.folder / "ca.crt"
        if not authority.exists():
            named = ["-subj", "/CN=cluster", "-keyout", str(self.folder / "ca.key"), "-out", str(authority)]
            run(["openssl", "req", "-x509", *NEW_KEY, *named])
        if not (self.folder / "accounts.key").exists():
            run(
                ["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", self.folder / "accounts.key"]
            )
        names = [f"IP:{address}" for address in ("127.0.0.1", self.address, SERVICE_ADDRESS)] + [
            f"DNS:{name}" for name in SERVER_NAMES
        ]
        self._sign(
            "apiserver", "/CN=kube-apiserver", "extendedKeyUsage=serverAuth", "subjectAltName=" + ",".join(names)
        )
        self._sign("apiserver-client", "/O=system:masters/CN=kube-apiserver", "extendedKeyUsage=clientAuth")

    def _sign(self, name: str, subject: str, *extensions: str) -> tuple[Path, Path]:
        key, certificate = self.folder / f"{name}.key", self.folder / f"{name}.crt"
        if not certificate.exists():
            added = [
                word
                for extension in ("basicConstraints=critical,CA:FALSE", *extensions)
                for word in ("-addext", extension)
            ]
            authority: list[str | Path] = ["-CA", self.folder / "ca.crt", "-CAkey", self.folder / "ca.key"]
            named = ["-subj", subject, "-keyout", str(key), "-out", str(certificate)]
            run(["openssl", "req", "-x509", *NEW_KEY, *authority, *added, *named])
        return key, certificate

    def user(self, name: str, *groups: str) -> Path:
        """The kubeconfig of a user; made when it is asked for the first time."""
        short = name.removeprefix("system:").replace(":", "-")
        path = self.folder / f"{short}.conf"
        if not path.exists():
            subject = "".join(f"/O={group}" for group in groups) + f"/CN={name}"
            key, certificate = self._sign(short, subject, "extendedKeyUsage=clientAuth")
            cluster = {
                "server": f"https://{self.address}:{API_PORT}",
                "certificate-authority-data": _data(self.folder / "ca.crt"),
            }
            user = {"client-certificate-data": _data(certificate), "client-key-data": _data(key)}
            config = {
                "apiVersion": "v1", "kind": "Config", "current-context": "cluster",
                "clusters": [{"name": "cluster", "cluster": cluster}], "users": [{"name": name, "user": user}],
                "contexts": [{"name": "cluster", "context": {"cluster": "cluster", "user": name}}],
            }  # fmt: skip
            written = path.with_suffix(".new")
            written.touch(mode=0o600)
            written.write_text(json.dumps(config))
            written.replace(path)
        return path


def _data(file: Path) -> str:
    return base64.b64encode(file.read_bytes()).decode()
