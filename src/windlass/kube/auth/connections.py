"""Connection parameters of one API server: address, TLS, authentication, proxy. `repr` never shows secrets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from windlass.kube.redactions import Redactor

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Pem:
    """Certificates or a key in PEM format, and their location for error messages."""

    content: bytes = field(repr=False)
    where: str


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    chain: Pem
    key: Pem


@dataclass(frozen=True, slots=True)
class Tls:
    ca_bundle: Pem | None = None
    """`None` means the certificate authorities of the system."""
    client_certificate: ClientCertificate | None = None
    server_name: str = ""
    """The name that the server's certificate must carry; empty means the host of the server URL."""
    insecure: bool = False
    """Do not verify the server's certificate."""


@dataclass(frozen=True, slots=True)
class Proxy:
    url: str
    """Without user name and password."""
    userinfo: str = field(default="", repr=False)
    """`user:password`, percent-encoded as in a URL."""


@dataclass(frozen=True, slots=True)
class Token:
    value: str = field(repr=False)
    where: str


@dataclass(frozen=True, slots=True)
class TokenFile:
    path: Path
    where: str


@dataclass(frozen=True, slots=True)
class BasicAuth:
    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    command: str
    """A name to look up on PATH, or an absolute path."""
    api_version: str
    where: str
    """The kubeconfig entry that configures it."""
    args: tuple[str, ...] = field(default=(), repr=False)
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    install_hint: str = ""
    cluster_config: bytes | None = field(default=None, repr=False)
    """JSON from the cluster's exec extension. `None` means the plugin gets no cluster information."""


AuthMethod = Token | TokenFile | BasicAuth | ExecPlugin


@dataclass(frozen=True, slots=True)
class Impersonation:
    user: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class Connection:
    server: str
    """`https://host:port/prefix`, with no slash at the end and no credentials."""
    where: str
    """The kubeconfig or other source it was loaded from."""
    namespace: str = "default"
    tls: Tls = Tls()
    auth: AuthMethod | None = None
    proxy: Proxy | None = None
    """`None` means that environment variables may set one."""
    impersonation: Impersonation | None = None
    environ: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    """Environment variables: proxies, certificate authorities of the system, and the environment of exec plugins."""
    redactor: Redactor = field(default_factory=Redactor, repr=False, compare=False)
    """Knows every credential that the connection has used; what prints text of this server redacts with it."""

    @property
    def notices(self) -> tuple[str, ...]:
        """What the user of this connection must know before relying on it."""
        if not self.tls.insecure or not self.server.startswith("https:"):
            return ()
        problem = f"the certificate of {self.server} is not verified (insecure-skip-tls-verify in {self.where})"
        return (f"{problem}: the credentials may go to another server; set certificate-authority instead",)
