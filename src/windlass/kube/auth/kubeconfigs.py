"""Connections from kubeconfigs and in-cluster service accounts, by kubectl's rules.

Each error names the file and the field.
"""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol, TypeVar
from urllib.parse import urlsplit

import msgspec

from windlass.errors import InvalidInput
from windlass.kube.auth import kubeconfig_documents, proxies
from windlass.kube.auth.connections import (
    AuthMethod,
    BasicAuth,
    ClientCertificate,
    Connection,
    ExecPlugin,
    Impersonation,
    Pem,
    Tls,
    Token,
    TokenFile,
)
from windlass.kube.auth.kubeconfig_documents import KubeconfigSection
from windlass.kube.bounded_files import read_file

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from windlass.kube.auth.kubeconfig_documents import (
        ExecConfig,
        Kubeconfig,
        KubeconfigCluster,
        KubeconfigContext,
        KubeconfigUser,
        NamedContext,
    )

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
IN_CLUSTER = "in-cluster service account"
EXEC_GROUP = "client.authentication.k8s.io"
EXEC_VERSIONS = (f"{EXEC_GROUP}/v1", f"{EXEC_GROUP}/v1beta1")
EXEC_EXTENSION = f"{EXEC_GROUP}/exec"
NO_VARIABLES: Mapping[str, str] = MappingProxyType({})

_CONTROL_CHARACTER = re.compile(r"[\x00-\x1f\x7f]")  # a control character could end a header line


def load_file(path: Path, *, context: str | None = None, environ: Mapping[str, str] = NO_VARIABLES) -> Connection:
    try:
        content = read_file(path)
    except OSError as error:
        hint = "name a kubeconfig that exists" if isinstance(error, FileNotFoundError) else ""
        raise InvalidInput(f"cannot read the kubeconfig: {error.strerror}", where=str(path), hint=hint) from None
    return load(content, where=str(path), directory=path.absolute().parent, context=context, environ=environ)


def load(
    content: bytes,
    *,
    where: str,
    directory: Path | None = None,
    context: str | None = None,
    environ: Mapping[str, str] = NO_VARIABLES,
) -> Connection:
    """The connection of `context`, or of the current context. Relative paths start at `directory`."""
    config = kubeconfig_documents.parse(content, where)
    named_context = _select_context(config, context, where)
    context_section = KubeconfigSection(where, directory, f"contexts[{named_context.name}].context")
    cluster = _find_cluster(config, named_context.context, context_section)
    user = _find_user(config, named_context.context, context_section)
    cluster_section = KubeconfigSection(where, directory, f"clusters[{named_context.context.cluster}].cluster")
    user_section = KubeconfigSection(where, directory, f"users[{named_context.context.user}].user")
    return Connection(
        server=_server_url(cluster.server, cluster_section),
        where=where,
        namespace=named_context.context.namespace or "default",
        tls=Tls(
            ca_bundle=_ca_bundle(cluster, cluster_section),
            client_certificate=_client_certificate(user, user_section),
            server_name=_server_name(cluster.tls_server_name, cluster_section),
            insecure=cluster.insecure_skip_tls_verify,
        ),
        auth=_auth_method(user, cluster, user_section),
        proxy=proxies.parse_proxy(cluster.proxy_url, cluster_section.where("proxy-url")) if cluster.proxy_url else None,
        impersonation=_impersonation(user, user_section),
        environ=environ,
    )


def in_cluster(environ: Mapping[str, str], directory: Path = SERVICE_ACCOUNT) -> Connection:
    """The connection with the service account of the pod this process runs in."""
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT")
    if not host or not port:
        raise InvalidInput(
            "not inside a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set",
            where=IN_CLUSTER,
            hint="give a kubeconfig",
        )
    section = KubeconfigSection(IN_CLUSTER, directory, str(directory))
    ca_file = directory / "ca.crt"
    namespace_file = directory / "namespace"
    try:
        return Connection(
            server=_server_url(f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}", section),
            where=IN_CLUSTER,
            namespace=(read_file(namespace_file).decode(errors="replace").strip() if namespace_file.exists() else "")
            or "default",
            tls=Tls(ca_bundle=Pem(read_file(ca_file), str(ca_file))),
            auth=TokenFile(directory / "token", str(directory / "token")),
            environ=environ,
        )
    except OSError as error:
        raise InvalidInput(
            f"cannot read the service account: {error.strerror}",
            where=str(error.filename),
            hint="does the pod have automountServiceAccountToken: false?",
        ) from None


class _NamedEntry(Protocol):
    @property
    def name(self) -> str: ...


_Entry = TypeVar("_Entry", bound=_NamedEntry)


def _find_entry(entries: Sequence[_Entry], name: str, kind: str, where: str) -> _Entry | None:
    found = [entry for entry in entries if entry.name == name]
    if len(found) > 1:
        raise InvalidInput(f"{len(found)} entries have this name", where=f"{where}: {kind}[{name}]")
    return found[0] if found else None


def _select_context(config: Kubeconfig, requested: str | None, where: str) -> NamedContext:
    name = requested or config.current_context
    if not name:
        raise InvalidInput(
            "there is no current-context",
            where=where,
            hint=f"choose a context: {_available_hint(config.contexts, name)}",
        )
    found = _find_entry(config.contexts, name, "contexts", where)
    if found is None:
        location = where if requested else f"{where}: current-context"
        raise InvalidInput(f"there is no context {name!r}", where=location, hint=_available_hint(config.contexts, name))
    return found


def _find_cluster(config: Kubeconfig, context: KubeconfigContext, section: KubeconfigSection) -> KubeconfigCluster:
    found = _find_entry(config.clusters, context.cluster, "clusters", section.file)
    if found is None:
        raise section.error(
            "cluster", f"there is no cluster {context.cluster!r}", _available_hint(config.clusters, context.cluster)
        )
    return found.cluster


def _find_user(config: Kubeconfig, context: KubeconfigContext, section: KubeconfigSection) -> KubeconfigUser:
    """The user entry of the context; an empty one, for anonymous access, if the context names no user."""
    found = _find_entry(config.users, context.user, "users", section.file)
    if found is not None:
        return found.user
    if context.user:
        raise section.error("user", f"there is no user {context.user!r}", _available_hint(config.users, context.user))
    return kubeconfig_documents.KubeconfigUser()


def _available_hint(entries: Sequence[_NamedEntry], name: str) -> str:
    names = sorted(entry.name for entry in entries)
    if not names:
        return "there are none"
    guess = difflib.get_close_matches(name, names, n=1)
    return (f"did you mean {guess[0]!r}? " if guess else "") + f"there is {', '.join(names)}"


def _server_url(text: str, section: KubeconfigSection) -> str:
    if not text:
        raise section.error("server", "the cluster has no server")
    try:
        url = urlsplit(text)
        usable = proxies.is_valid_host(url.hostname) and url.port != 0 and text.isascii() and text.isprintable()
    except ValueError:
        usable = False
    if not usable or " " in text or url.scheme not in proxies.DEFAULT_PORTS or url.query or url.fragment:
        raise section.error("server", "not the URL of a server", "write https://host:port")
    if "@" in url.netloc:
        raise section.error("server", "a URL with user and password", "put them into the user entry")
    return url.scheme + text[len(url.scheme) :].rstrip("/")  # urlsplit makes the scheme lower case


def _server_name(name: str, section: KubeconfigSection) -> str:
    if name and not proxies.is_valid_host(name):
        raise section.error("tls-server-name", "not the name of a host")
    return name


def _ca_bundle(cluster: KubeconfigCluster, section: KubeconfigSection) -> Pem | None:
    ca_bundle = section.load_pem(
        cluster.certificate_authority_data, cluster.certificate_authority, "certificate-authority"
    )
    if ca_bundle is not None and cluster.insecure_skip_tls_verify:
        raise section.error("insecure-skip-tls-verify", "not allowed beside a certificate authority", "remove one")
    return ca_bundle


def _client_certificate(user: KubeconfigUser, section: KubeconfigSection) -> ClientCertificate | None:
    chain = section.load_pem(user.client_certificate_data, user.client_certificate, "client-certificate")
    key = section.load_pem(user.client_key_data, user.client_key, "client-key")
    if chain is None and key is None:
        return None
    if chain is None:
        raise section.error("client-certificate", "missing, though there is a client-key")
    if key is None:
        raise section.error("client-key", "missing, though there is a client-certificate")
    return ClientCertificate(chain, key)


def _auth_method(user: KubeconfigUser, cluster: KubeconfigCluster, section: KubeconfigSection) -> AuthMethod | None:
    """The authentication method; as in kubectl, a token or password takes precedence over an exec plugin."""
    if user.auth_provider is not None:
        raise section.error("auth-provider", "Kubernetes has given up auth-provider", "use an exec plugin instead")
    if (user.username or user.password) and (user.token or user.token_file):
        raise section.error("username", "not allowed beside a token", "remove one")
    if user.token_file:
        return TokenFile(section.resolve(user.token_file, "tokenFile"), section.where("tokenFile"))
    if user.token:
        return Token(user.token, section.where("token"))
    if user.username or user.password:
        return BasicAuth(user.username, user.password)
    return _exec_plugin(user.exec, cluster, section) if user.exec is not None else None


def _exec_plugin(exec_config: ExecConfig, cluster: KubeconfigCluster, section: KubeconfigSection) -> ExecPlugin:
    if not exec_config.command:
        raise section.error("exec.command", "missing")
    if exec_config.api_version not in EXEC_VERSIONS:
        raise section.error("exec.apiVersion", "not a version that is supported", f"one of {', '.join(EXEC_VERSIONS)}")
    modes = ("IfAvailable", "Never", "Always") + (("",) if exec_config.api_version.endswith("beta1") else ())
    if exec_config.interactive_mode not in modes:
        raise section.error("exec.interactiveMode", "must be one of Never, IfAvailable, Always")
    if exec_config.interactive_mode == "Always":
        raise section.error("exec.interactiveMode", "the plugin insists on a terminal", "log in another way")
    cluster_config = next((each.extension for each in cluster.extensions if each.name == EXEC_EXTENSION), None)
    is_path = "/" in exec_config.command
    return ExecPlugin(
        command=str(section.resolve(exec_config.command, "exec.command")) if is_path else exec_config.command,
        api_version=exec_config.api_version,
        where=section.where("exec"),
        args=tuple(exec_config.args),
        env=tuple((variable.name, variable.value) for variable in exec_config.env),
        install_hint=exec_config.install_hint,
        cluster_config=msgspec.json.encode(cluster_config) if exec_config.provide_cluster_info else None,
    )


def _impersonation(user: KubeconfigUser, section: KubeconfigSection) -> Impersonation | None:
    extra = tuple((key, tuple(values)) for key, values in user.as_user_extra.items())
    if not user.as_:
        if user.as_uid or user.as_groups or extra:
            raise section.error("as", "missing, though as-uid, as-groups or as-user-extra is there")
        return None
    for field, texts in (
        ("as", [user.as_]),
        ("as-uid", [user.as_uid]),
        ("as-groups", user.as_groups),
        ("as-user-extra", [value for _, values in extra for value in values]),
    ):
        if any(_CONTROL_CHARACTER.search(text) for text in texts):
            raise section.error(field, "no control characters are allowed")
    return Impersonation(user.as_, user.as_uid, tuple(user.as_groups), extra)
