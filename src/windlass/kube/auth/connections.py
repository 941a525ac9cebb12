"""How to reach one API server and log in to it, as a value. What is secret in it never shows in repr or str."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Pem:
    """Certificates or a key, and where they came from."""

    content: bytes = field(repr=False)
    where: str


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    chain: Pem
    key: Pem


@dataclass(frozen=True, slots=True)
class Tls:
    authorities: Pem | None = None
    """None: the system's."""
    client: ClientCertificate | None = None
    server_name: str = ""
    """The name the server's certificate must have, if not that of its address."""
    insecure: bool = False


@dataclass(frozen=True, slots=True)
class Proxy:
    url: str
    """Without user and password."""
    userinfo: str = field(default="", repr=False)
    """`user:password`, as encoded in a URL."""


@dataclass(frozen=True, slots=True)
class Token:
    value: str = field(repr=False)
    where: str


@dataclass(frozen=True, slots=True)
class TokenFile:
    path: Path
    where: str


@dataclass(frozen=True, slots=True)
class BasicLogin:
    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    command: str
    """A bare name to be found on PATH, or an absolute path."""
    api_version: str
    where: str
    """The kubeconfig that asks for it."""
    args: tuple[str, ...] = field(default=(), repr=False)
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    install_hint: str = ""
    cluster_config: bytes | None = field(default=None, repr=False)
    """JSON for the plugin about this cluster. None: it is told nothing about the cluster."""


Login = Token | TokenFile | BasicLogin | ExecPlugin


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
    """The kubeconfig, or what else it was made from."""
    namespace: str = "default"
    tls: Tls = Tls()
    login: Login | None = None
    proxy: Proxy | None = None
    """None: the environment may still name one."""
    impersonation: Impersonation | None = None
