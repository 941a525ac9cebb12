"""Connections from kubeconfigs and in-cluster service accounts, by kubectl's rules.

Each error names the file and the field.
"""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar
from urllib.parse import urlsplit

import msgspec

from windlass.errors import InvalidInput
from windlass.kube.auth import kubeconfig_documents, proxies
from windlass.kube.auth.connections import (
    BasicLogin,
    ClientCertificate,
    Connection,
    ExecPlugin,
    Impersonation,
    Login,
    Pem,
    Tls,
    Token,
    TokenFile,
)
from windlass.kube.auth.kubeconfig_documents import Place

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from windlass.kube.auth.kubeconfig_documents import Cluster, Context, Exec, Kubeconfig, NamedContext, User

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
IN_CLUSTER = "in-cluster service account"
EXEC_GROUP = "client.authentication.k8s.io"
EXEC_VERSIONS = (f"{EXEC_GROUP}/v1", f"{EXEC_GROUP}/v1beta1")
EXEC_EXTENSION = f"{EXEC_GROUP}/exec"

_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f]")  # a control character could end a header line


def load_file(path: Path, context: str | None = None) -> Connection:
    try:
        content = path.read_bytes()
    except OSError as error:
        hint = "name a kubeconfig that exists" if isinstance(error, FileNotFoundError) else ""
        raise InvalidInput(f"cannot read the kubeconfig: {error.strerror}", where=str(path), hint=hint) from None
    return load(content, where=str(path), directory=path.absolute().parent, context=context)


def load(content: bytes, *, where: str, directory: Path | None = None, context: str | None = None) -> Connection:
    """The connection of `context`, or of the current context. Relative paths start at `directory`."""
    config = kubeconfig_documents.parse(content, where)
    chosen = _choose(config, context, where)
    place = Place(where, directory, f"contexts[{chosen.name}].context")
    cluster = _cluster_of(config, chosen.context, place)
    user = _user_of(config, chosen.context, place)
    at_cluster = Place(where, directory, f"clusters[{chosen.context.cluster}].cluster")
    at_user = Place(where, directory, f"users[{chosen.context.user}].user")
    return Connection(
        server=_server(cluster.server, at_cluster),
        where=where,
        namespace=chosen.context.namespace or "default",
        tls=Tls(
            authorities=_authorities(cluster, at_cluster),
            client=_client_certificate(user, at_user),
            server_name=_server_name(cluster.tls_server_name, at_cluster),
            insecure=cluster.insecure_skip_tls_verify,
        ),
        login=_login(user, cluster, at_user),
        proxy=proxies.parse(cluster.proxy_url, at_cluster.where("proxy-url")) if cluster.proxy_url else None,
        impersonation=_impersonation(user, at_user),
    )


def in_cluster(environ: Mapping[str, str], root: Path = SERVICE_ACCOUNT) -> Connection:
    """The connection with the service account of the pod this process runs in."""
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT")
    if not host or not port:
        raise InvalidInput(
            "not inside a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set",
            where=IN_CLUSTER,
            hint="give a kubeconfig",
        )
    place = Place(IN_CLUSTER, root, str(root))
    authorities = root / "ca.crt"
    namespace = root / "namespace"
    try:
        return Connection(
            server=_server(f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}", place),
            where=IN_CLUSTER,
            namespace=(namespace.read_text("utf-8").strip() if namespace.exists() else "") or "default",
            tls=Tls(authorities=Pem(authorities.read_bytes(), str(authorities))),
            login=TokenFile(root / "token", str(root / "token")),
        )
    except OSError as error:
        raise InvalidInput(
            f"cannot read the service account: {error.strerror}",
            where=str(error.filename),
            hint="does the pod have automountServiceAccountToken: false?",
        ) from None


class _Named(Protocol):
    @property
    def name(self) -> str: ...


_Entry = TypeVar("_Entry", bound=_Named)


def _find(entries: Sequence[_Entry], name: str, kind: str, where: str) -> _Entry | None:
    found = [entry for entry in entries if entry.name == name]
    if len(found) > 1:
        raise InvalidInput(f"{len(found)} entries have this name", where=f"{where}: {kind}[{name}]")
    return found[0] if found else None


def _choose(config: Kubeconfig, wanted: str | None, where: str) -> NamedContext:
    name = wanted or config.current_context
    if not name:
        raise InvalidInput(
            "there is no current-context", where=where, hint=f"choose a context: {_existing(config.contexts, name)}"
        )
    found = _find(config.contexts, name, "contexts", where)
    if found is None:
        place = where if wanted else f"{where}: current-context"
        raise InvalidInput(f"there is no context {name!r}", where=place, hint=_existing(config.contexts, name))
    return found


def _cluster_of(config: Kubeconfig, context: Context, place: Place) -> Cluster:
    found = _find(config.clusters, context.cluster, "clusters", place.file)
    if found is None:
        raise place.mistake(
            "cluster", f"there is no cluster {context.cluster!r}", _existing(config.clusters, context.cluster)
        )
    return found.cluster


def _user_of(config: Kubeconfig, context: Context, place: Place) -> User:
    """The user entry of the context; an empty one, for anonymous access, if the context names no user."""
    found = _find(config.users, context.user, "users", place.file)
    if found is not None:
        return found.user
    if context.user:
        raise place.mistake("user", f"there is no user {context.user!r}", _existing(config.users, context.user))
    return kubeconfig_documents.User()


def _existing(entries: Sequence[_Named], wanted: str) -> str:
    names = sorted(entry.name for entry in entries)
    if not names:
        return "there are none"
    guess = difflib.get_close_matches(wanted, names, n=1)
    return (f"did you mean {guess[0]!r}? " if guess else "") + f"there is {', '.join(names)}"


def _server(text: str, place: Place) -> str:
    if not text:
        raise place.mistake("server", "the cluster has no server")
    try:
        url = urlsplit(text)
        usable = proxies.is_host(url.hostname) and url.port != 0 and text.isascii() and text.isprintable()
    except ValueError:
        usable = False
    if not usable or " " in text or url.scheme not in proxies.PORTS or url.query or url.fragment:
        raise place.mistake("server", "not the URL of a server", "write https://host:port")
    if "@" in url.netloc:
        raise place.mistake("server", "a URL with user and password", "put them into the user entry")
    return url.scheme + text[len(url.scheme) :].rstrip("/")  # urlsplit makes the scheme lower case


def _server_name(name: str, place: Place) -> str:
    if name and not proxies.is_host(name):
        raise place.mistake("tls-server-name", "not the name of a host")
    return name


def _authorities(cluster: Cluster, place: Place) -> Pem | None:
    found = place.pem(cluster.certificate_authority_data, cluster.certificate_authority, "certificate-authority")
    if found is not None and cluster.insecure_skip_tls_verify:
        raise place.mistake("insecure-skip-tls-verify", "not allowed beside a certificate authority", "remove one")
    return found


def _client_certificate(user: User, place: Place) -> ClientCertificate | None:
    chain = place.pem(user.client_certificate_data, user.client_certificate, "client-certificate")
    key = place.pem(user.client_key_data, user.client_key, "client-key")
    if chain is None and key is None:
        return None
    if chain is None:
        raise place.mistake("client-certificate", "missing, though there is a client-key")
    if key is None:
        raise place.mistake("client-key", "missing, though there is a client-certificate")
    return ClientCertificate(chain, key)


def _login(user: User, cluster: Cluster, place: Place) -> Login | None:
    """The authentication method; as in kubectl, a token or password takes precedence over an exec plugin."""
    if user.auth_provider is not None:
        raise place.mistake("auth-provider", "Kubernetes has given up auth-provider", "use an exec plugin instead")
    if (user.username or user.password) and (user.token or user.token_file):
        raise place.mistake("username", "not allowed beside a token", "remove one")
    if user.token_file:
        return TokenFile(place.resolve(user.token_file, "tokenFile"), place.where("tokenFile"))
    if user.token:
        return Token(user.token, place.where("token"))
    if user.username or user.password:
        return BasicLogin(user.username, user.password)
    return _plugin(user.exec, cluster, place) if user.exec is not None else None


def _plugin(plugin: Exec, cluster: Cluster, place: Place) -> ExecPlugin:
    if not plugin.command:
        raise place.mistake("exec.command", "missing")
    if plugin.api_version not in EXEC_VERSIONS:
        raise place.mistake("exec.apiVersion", "not a version that is supported", f"one of {', '.join(EXEC_VERSIONS)}")
    modes = ("IfAvailable", "Never", "Always") + (("",) if plugin.api_version.endswith("beta1") else ())
    if plugin.interactive_mode not in modes:
        raise place.mistake("exec.interactiveMode", "must be one of Never, IfAvailable, Always")
    if plugin.interactive_mode == "Always":
        raise place.mistake("exec.interactiveMode", "the plugin insists on a terminal", "log in another way")
    config = next((each.extension for each in cluster.extensions if each.name == EXEC_EXTENSION), None)
    is_path = "/" in plugin.command
    return ExecPlugin(
        command=str(place.resolve(plugin.command, "exec.command")) if is_path else plugin.command,
        api_version=plugin.api_version,
        where=place.where("exec"),
        args=tuple(plugin.args),
        env=tuple((variable.name, variable.value) for variable in plugin.env),
        install_hint=plugin.install_hint,
        cluster_config=msgspec.json.encode(config) if plugin.provide_cluster_info else None,
    )


def _impersonation(user: User, place: Place) -> Impersonation | None:
    extra = tuple((key, tuple(values)) for key, values in user.as_user_extra.items())
    if not user.as_:
        if user.as_uid or user.as_groups or extra:
            raise place.mistake("as", "missing, though as-uid, as-groups or as-user-extra is there")
        return None
    for field, texts in (
        ("as", [user.as_]),
        ("as-uid", [user.as_uid]),
        ("as-groups", user.as_groups),
        ("as-user-extra", [value for _, values in extra for value in values]),
    ):
        if any(_UNPRINTABLE.search(text) for text in texts):
            raise place.mistake(field, "no control characters are allowed")
    return Impersonation(user.as_, user.as_uid, tuple(user.as_groups), extra)
