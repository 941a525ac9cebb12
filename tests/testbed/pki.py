"""Throw-away keys and certificates for one node, made with openssl, and the kubeconfig files that use them."""

from __future__ import annotations

import base64
import subprocess
from typing import TYPE_CHECKING

import yaml

from tests.testbed import addresses

if TYPE_CHECKING:
    from pathlib import Path

_EC_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc")
_SERVER_NAMES = ",".join(
    (
        "subjectAltName=DNS:kubernetes",
        "DNS:kubernetes.default",
        "DNS:kubernetes.default.svc",
        "DNS:kubernetes.default.svc.cluster.local",
        "DNS:localhost",
        "IP:127.0.0.1",
        f"IP:{addresses.API_SERVICE}",
        f"IP:{addresses.NODE}",
    )
)


def create(directory: Path) -> None:
    """Make the authority, the API server's and the administrator's certificates, and the key for service accounts."""
    directory.mkdir(mode=0o700)
    _openssl(
        directory, "req", "-x509", *_EC_KEY, "-keyout", "ca.key", "-out", "ca.crt", "-days", "30", "-subj", "/CN=ca"
    )
    _issue(directory, "api", "/CN=kube-apiserver", _SERVER_NAMES)
    _issue(directory, "admin", "/O=system:masters/CN=admin", "extendedKeyUsage=clientAuth")
    _openssl(directory, "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", "sa.key")


def kubeconfig(directory: Path, port: int) -> str:
    """A kubeconfig for the administrator with everything inline."""

    def inline(name: str) -> str:
        return base64.b64encode((directory / name).read_bytes()).decode()

    cluster = {"server": f"https://127.0.0.1:{port}", "certificate-authority-data": inline("ca.crt")}
    user = {"client-certificate-data": inline("admin.crt"), "client-key-data": inline("admin.key")}
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "testbed", "cluster": cluster}],
            "users": [{"name": "admin", "user": user}],
            "contexts": [{"name": "testbed", "context": {"cluster": "testbed", "user": "admin"}}],
            "current-context": "testbed",
        }
    )


def _issue(directory: Path, name: str, subject: str, extension: str) -> None:
    (directory / f"{name}.ext").write_text(extension)
    _openssl(directory, "req", *_EC_KEY, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", subject)
    authority = ("-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "30", "-extfile", f"{name}.ext")
    _openssl(directory, "x509", "-req", "-in", f"{name}.csr", *authority, "-out", f"{name}.crt")


def _openssl(directory: Path, *arguments: str) -> None:
    done = subprocess.run(
        ["openssl", *arguments], cwd=directory, check=False, capture_output=True, text=True, timeout=60
    )
    if done.returncode != 0:
        raise RuntimeError(f"openssl {arguments[0]}: {done.stderr}")
