"""Kubeconfig files parsed into typed structs, and locations in them for error messages.

`kubeconfigs` interprets the structs.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from windlass.errors import InvalidInput
from windlass.kube import yaml_documents
from windlass.kube.auth.connections import Pem
from windlass.kube.bounded_files import read_file
from windlass.kube.decoding import without_nulls


class KubeconfigExtension(msgspec.Struct):
    name: str = ""
    extension: Any = None


class KubeconfigCluster(msgspec.Struct, rename="kebab"):
    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    extensions: list[KubeconfigExtension] = []


class ExecVariable(msgspec.Struct):
    name: str
    value: str = ""


class ExecConfig(msgspec.Struct, rename="camel"):
    command: str = ""
    args: list[str] = []
    env: list[ExecVariable] = []
    api_version: str = ""
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""


class KubeconfigUser(msgspec.Struct, rename="kebab"):
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    username: str = ""
    password: str = ""
    exec: ExecConfig | None = None
    auth_provider: dict[str, Any] | None = None
    as_: str = msgspec.field(default="", name="as")
    as_uid: str = ""
    as_groups: list[str] = []
    as_user_extra: dict[str, list[str]] = {}


class KubeconfigContext(msgspec.Struct):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


class NamedCluster(msgspec.Struct):
    cluster: KubeconfigCluster = msgspec.field(default_factory=KubeconfigCluster)
    name: str = ""


class NamedUser(msgspec.Struct):
    user: KubeconfigUser = msgspec.field(default_factory=KubeconfigUser)
    name: str = ""


class NamedContext(msgspec.Struct):
    context: KubeconfigContext = msgspec.field(default_factory=KubeconfigContext)
    name: str = ""


class Kubeconfig(msgspec.Struct, rename="kebab"):
    kind: str = ""
    current_context: str = ""
    clusters: list[NamedCluster] = []
    users: list[NamedUser] = []
    contexts: list[NamedContext] = []


def parse(content: bytes, where: str) -> Kubeconfig:
    document = yaml_documents.load(content, where)
    if document is None:
        raise InvalidInput("the kubeconfig is empty", where=where)
    if not isinstance(document, dict):
        raise InvalidInput("not a kubeconfig: the top must be a mapping", where=where)
    document = without_nulls(document)  # kubectl treats null as a missing field
    try:
        config = msgspec.convert(document, Kubeconfig)
    except msgspec.ValidationError as error:
        what, _, path = str(error).partition(" - at `$")
        field_path = _path_with_entry_name(path.rstrip("`").lstrip("."), document)
        raise InvalidInput(what.replace("`", ""), where=f"{where}: {field_path}") from None
    if config.kind not in ("", "Config"):
        raise InvalidInput("not a kubeconfig: its kind must be Config", where=f"{where}: kind")
    return config


@dataclass(frozen=True, slots=True)
class KubeconfigSection:
    """A mapping in a kubeconfig, such as `users[admin].user`: locates its fields in errors and resolves its files."""

    file: str
    directory: Path | None
    path: str

    def where(self, field: str) -> str:
        return f"{self.file}: {self.path}.{field}"

    def error(self, field: str, what: str, hint: str = "") -> InvalidInput:
        return InvalidInput(what, where=self.where(field), hint=hint)

    def resolve(self, name: str, field: str) -> Path:
        """The path; a relative one starts at the directory of the kubeconfig."""
        path = Path(name)
        if path.is_absolute():
            return path
        if self.directory is None:
            raise self.error(field, "a relative path, in a kubeconfig of no directory", "write the whole path")
        return self.directory / path

    def load_pem(self, data: str, file: str, field: str) -> Pem | None:
        """The content of `{field}-data`, or else of the file named by `field`; `None` if both are empty."""
        if data:
            try:
                return Pem(base64.b64decode("".join(data.split()), validate=True), self.where(f"{field}-data"))
            except (binascii.Error, ValueError):
                raise self.error(f"{field}-data", "not base64") from None
        if not file:
            return None
        path = self.resolve(file, field)
        try:
            return Pem(read_file(path), self.where(field))
        except OSError as error:
            raise self.error(field, f"cannot read {path}: {error.strerror}") from None


def _path_with_entry_name(path: str, document: dict[str, Any]) -> str:
    """Replace the index with the entry's name: `users[0].user.token` becomes `users[admin].user.token`."""
    match = re.match(r"(clusters|users|contexts)\[(\d+)\]", path)
    entry = document[match[1]][int(match[2])] if match else None
    if not match or not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        return path or "the top"
    return f"{match[1]}[{entry['name']}]{path[match.end() :]}"
