"""Kubeconfigs: what they mean, and each mistake with its place."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from tests.kube.leaks import assert_hidden
from windlass.errors import ExitCode, InvalidInput
from windlass.kube.auth import kubeconfigs
from windlass.kube.auth.connections import (
    BasicAuth,
    ClientCertificate,
    Connection,
    ExecPlugin,
    Impersonation,
    Pem,
    Proxy,
    Tls,
    Token,
    TokenFile,
)

SECRET = "s3cret"


def config(cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None, **top: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "preferences": {},
        "current-context": "here",
        "contexts": [
            {"name": "here", "context": {"cluster": "c", "user": "u"}},
            {"name": "there", "context": {"cluster": "c", "user": "u", "namespace": "mine"}},
        ],
        "clusters": [{"name": "c", "cluster": {"server": "https://k:6443", **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
        **top,
    }


def load(document: dict[str, Any], context: str | None = None, directory: Path | None = None) -> Connection:
    return kubeconfigs.load(yaml.safe_dump(document).encode(), where="f", directory=directory, context=context)


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def test_the_current_context_is_taken_unless_another_is_named() -> None:
    assert load(config()) == Connection("https://k:6443", "f")
    assert load(config(), context="there").namespace == "mine"


def test_json_is_a_kubeconfig_too() -> None:
    content = msgspec.json.format(msgspec.json.encode(config()), indent=2).replace(b"  ", b"\t")
    assert kubeconfigs.load(content, where="f") == Connection("https://k:6443", "f")


def test_everything_about_the_cluster(tmp_path: Path) -> None:
    cluster = {
        "server": "https://k:6443/prefix/",
        "certificate-authority-data": b64("the ca"),
        "certificate-authority": "not/read",
        "tls-server-name": "other.name",
        "proxy-url": f"http://me:{SECRET}@proxy:3128",
        "disable-compression": True,
        "unknown": {"field": 1},
    }
    connection = load(config(cluster), directory=tmp_path)
    assert connection.server == "https://k:6443/prefix"
    assert connection.tls == Tls(
        Pem(b"the ca", "f: clusters[c].cluster.certificate-authority-data"), server_name="other.name"
    )
    assert connection.proxy == Proxy("http://proxy:3128", f"me:{SECRET}")
    assert_hidden(connection, SECRET)


def test_the_scheme_may_be_written_in_capitals() -> None:
    assert load(config({"server": "HTTPS://Host/Prefix/"})).server == "https://Host/Prefix"


def test_insecure() -> None:
    assert load(config({"insecure-skip-tls-verify": True})).tls == Tls(insecure=True)


def test_files_lie_beside_the_kubeconfig(tmp_path: Path) -> None:
    for name in ("ca", "crt", "key"):
        (tmp_path / name).write_text(f"{SECRET} {name}")
    user = {"client-certificate": "crt", "client-key": str(tmp_path / "key"), "tokenFile": "sub/token", "token": SECRET}
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(config({"certificate-authority": "ca"}, user)))
    connection = kubeconfigs.load_file(path)
    assert connection == Connection(
        "https://k:6443",
        str(path),
        tls=Tls(
            Pem(f"{SECRET} ca".encode(), f"{path}: clusters[c].cluster.certificate-authority"),
            ClientCertificate(
                Pem(f"{SECRET} crt".encode(), f"{path}: users[u].user.client-certificate"),
                Pem(f"{SECRET} key".encode(), f"{path}: users[u].user.client-key"),
            ),
        ),
        auth=TokenFile(tmp_path / "sub/token", f"{path}: users[u].user.tokenFile"),
    )
    assert_hidden(connection, SECRET)


@pytest.mark.parametrize(
    ("user", "login"),
    [
        ({}, None),
        ({"token": "", "exec": None, "auth-provider": None}, None),
        ({"token": SECRET}, Token(SECRET, "f: users[u].user.token")),
        ({"tokenFile": "/t"}, TokenFile(Path("/t"), "f: users[u].user.tokenFile")),
        ({"username": "me", "password": SECRET}, BasicAuth("me", SECRET)),
        ({"password": SECRET}, BasicAuth("", SECRET)),
        (
            {"token": SECRET, "exec": {"command": "x", "apiVersion": "client.authentication.k8s.io/v1beta1"}},
            Token(SECRET, "f: users[u].user.token"),
        ),
    ],
)
def test_one_way_to_log_in(user: dict[str, Any], login: object) -> None:
    connection = load(config(user=user))
    assert connection.auth == login
    assert_hidden(connection, SECRET)


V1 = "client.authentication.k8s.io/v1"
V1BETA1 = "client.authentication.k8s.io/v1beta1"


def test_everything_about_a_plugin() -> None:
    plugin = {
        "apiVersion": V1,
        "command": "aws",
        "args": ["get-token", SECRET],
        "env": [{"name": "A", "value": SECRET}],
        "installHint": "install it",
        "interactiveMode": "IfAvailable",
        "provideClusterInfo": True,
    }
    extensions = [
        {"name": "other", "extension": 1},
        {"name": "client.authentication.k8s.io/exec", "extension": {"audience": SECRET}},
    ]
    connection = load(config({"extensions": extensions}, {"exec": plugin}))
    assert connection.auth == ExecPlugin(
        "aws",
        V1,
        "f: users[u].user.exec",
        ("get-token", SECRET),
        (("A", SECRET),),
        "install it",
        b'{"audience":"s3cret"}',
    )
    assert_hidden(connection, SECRET)


@pytest.mark.parametrize(
    ("command", "resolved"),
    [("aws", "aws"), ("./bin/aws", "/d/bin/aws"), ("bin/aws", "/d/bin/aws"), ("/bin/aws", "/bin/aws")],
)
def test_a_plugin_with_a_slash_is_found_from_the_kubeconfig(command: str, resolved: str) -> None:
    login = load(config(user={"exec": {"command": command, "apiVersion": V1BETA1}}), directory=Path("/d")).auth
    assert login == ExecPlugin(resolved, V1BETA1, "f: users[u].user.exec")


def test_impersonation() -> None:
    user = {"as": "her", "as-uid": "7", "as-groups": ["a", "b"], "as-user-extra": {"Scopes": ["p", "q"]}}
    expected = Impersonation("her", "7", ("a", "b"), (("Scopes", ("p", "q")),))
    assert load(config(user=user)).impersonation == expected


def test_a_context_without_a_user_is_anonymous() -> None:
    contexts = [{"name": "here", "context": {"cluster": "c"}}]
    assert load(config(contexts=contexts, users=None)).auth is None


FILE_MISTAKES: list[tuple[dict[str, Any], str, str]] = [
    (config(users=[SECRET]), "users[0]", "Expected object, got str"),
    (config(users=[{"name": 7}]), "users[0].name", "Expected str, got int"),
    (config(kind="Pod"), "kind", "not a kubeconfig"),
    (config(clusters=7), "clusters", "Expected array, got int"),
    (config(clusters=[]), "contexts[here].context.cluster", "there is no cluster 'c'"),
    (config(users=[]), "contexts[here].context.user", "there is no user 'u'"),
    (config(users=[{"name": "u"}, {"name": "u"}]), "users[u]", "2 entries have this name"),
    (config() | {"current-context": "hare"}, "current-context", "there is no context 'hare'"),
]
CLUSTER_MISTAKES: list[tuple[dict[str, Any], str, str]] = [
    ({"server": ""}, "server", "the cluster has no server"),
    ({"server": "k:6443"}, "server", "not the URL of a server"),
    ({"server": "ftp://k"}, "server", "not the URL of a server"),
    ({"server": "https://"}, "server", "not the URL of a server"),
    ({"server": "https://k:x"}, "server", "not the URL of a server"),
    ({"server": "https://k:0"}, "server", "not the URL of a server"),
    ({"server": "https://[k"}, "server", "not the URL of a server"),
    ({"server": "https://k k"}, "server", "not the URL of a server"),
    ({"server": "https://ü"}, "server", "not the URL of a server"),
    ({"server": "https://k..k"}, "server", "not the URL of a server"),
    ({"server": f"https://{'k' * 64}:6443"}, "server", "not the URL of a server"),
    ({"server": "https://k/a b"}, "server", "not the URL of a server"),
    ({"tls-server-name": ".k"}, "tls-server-name", "not the name of a host"),
    ({"tls-server-name": "k\r\nx"}, "tls-server-name", "not the name of a host"),
    ({"server": "https://k?s3cret"}, "server", "not the URL of a server"),
    ({"server": "https://k#s3cret"}, "server", "not the URL of a server"),
    ({"server": "https://me:s3cret@k"}, "server", "a URL with user and password"),
    ({"certificate-authority-data": "s3cret!"}, "certificate-authority-data", "not base64"),
    ({"certificate-authority": "/no/ca"}, "certificate-authority", "cannot read /no/ca: No such file"),
    ({"certificate-authority": "ca"}, "certificate-authority", "a relative path"),
    ({"insecure-skip-tls-verify": SECRET}, "insecure-skip-tls-verify", "Expected bool"),
    (
        {"certificate-authority-data": b64("x"), "insecure-skip-tls-verify": True},
        "insecure-skip-tls-verify",
        "not allowed beside a certificate authority",
    ),
    ({"proxy-url": "socks5://me:s3cret@p"}, "proxy-url", "a proxy of the kind socks5://"),
]
HALF = {"client-certificate-data": b64(SECRET)}
EXEC = {"command": "x", "apiVersion": V1, "interactiveMode": "Never"}
USER_MISTAKES: list[tuple[dict[str, Any], str, str]] = [
    ({"token": 12345678}, "token", "Expected str, got int"),
    ({"as-groups": SECRET}, "as-groups", "Expected array, got str"),
    (HALF | {"client-key-data": SECRET + "ü"}, "client-key-data", "not base64"),
    (HALF, "client-key", "missing"),
    ({"client-key-data": b64(SECRET)}, "client-certificate", "missing"),
    ({"auth-provider": {"name": "gcp", "config": {"id-token": SECRET}}}, "auth-provider", "has given up auth-provider"),
    ({"token": SECRET, "username": "me"}, "username", "not allowed beside a token"),
    ({"exec": EXEC | {"command": ""}}, "exec.command", "missing"),
    ({"exec": EXEC | {"command": "./x"}}, "exec.command", "a relative path"),
    ({"exec": EXEC | {"apiVersion": ""}}, "exec.apiVersion", "not a version"),
    ({"exec": EXEC | {"apiVersion": "client.authentication.k8s.io/v1alpha1"}}, "exec.apiVersion", "not a version"),
    ({"exec": EXEC | {"interactiveMode": ""}}, "exec.interactiveMode", "must be one of"),
    ({"exec": EXEC | {"interactiveMode": "Always"}}, "exec.interactiveMode", "insists on a terminal"),
    ({"exec": EXEC | {"env": [{"value": SECRET}]}}, "exec.env[0]", "missing required field name"),
    ({"as-groups": ["a"]}, "as", "missing"),
    ({"as": "a", "as-groups": ["a\nImpersonate-User: b"]}, "as-groups", "no control characters"),
    ({"as": "a", "as-user-extra": {"a": ["\x7f"]}}, "as-user-extra", "no control characters"),
]


@pytest.mark.parametrize(
    ("document", "place", "what"),
    [
        *FILE_MISTAKES,
        *[(config(fields), f"clusters[c].cluster.{place}", what) for fields, place, what in CLUSTER_MISTAKES],
        *[(config(user=fields), f"users[u].user.{place}", what) for fields, place, what in USER_MISTAKES],
    ],
)
def test_a_mistake_is_named_with_its_place(document: dict[str, Any], place: str, what: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        load(document)
    assert caught.value.where == f"f: {place}"
    assert what.lower() in caught.value.what.lower()
    assert caught.value.exit_code == ExitCode.INVALID
    assert_hidden(caught.value, SECRET, b64(SECRET), "12345678")


def test_an_unknown_context_brings_a_guess_and_a_list() -> None:
    with pytest.raises(InvalidInput) as caught:
        load(config(), context="ther")
    assert str(caught.value) == "f: there is no context 'ther' (did you mean 'there'? there is here, there)"


@pytest.mark.parametrize(
    ("contexts", "hint"), [([], "there are none"), ([{"name": "b"}, {"name": "a"}], "choose a context: there is a, b")]
)
def test_without_a_current_context_one_must_be_chosen(contexts: list[Any], hint: str) -> None:
    with pytest.raises(InvalidInput, match="there is no current-context") as caught:
        load(config(contexts=contexts) | {"current-context": ""})
    assert hint in caught.value.hint
    assert caught.value.where == "f"


@pytest.mark.parametrize(
    ("content", "where", "what"),
    [
        (b"", "f", "the kubeconfig is empty"),
        (b"# nothing\n---\n", "f", "the kubeconfig is empty"),
        (b"s3cret", "f", "not a kubeconfig: the top must be a mapping"),
        (b"- s3cret", "f", "not a kubeconfig: the top must be a mapping"),
        (b"\x7fELF\x02\x01\x01\x00s3cret", "f", "not a text file in UTF-8"),
        (b"users:\n- user: {token: s3cret: x}", "f:2:23", "not valid YAML: did not find expected ',' or '}'"),
        (b"{}", "f", "there is no current-context"),
    ],
)
def test_what_is_no_kubeconfig_at_all(content: bytes, where: str, what: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        kubeconfigs.load(content, where="f")
    assert (caught.value.what, caught.value.where) == (what, where)
    assert_hidden(caught.value, SECRET)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "config"
    with pytest.raises(InvalidInput, match="cannot read the kubeconfig: No such file or directory") as caught:
        kubeconfigs.load_file(path)
    assert caught.value.where == str(path)
    assert caught.value.hint


def test_a_directory_is_no_kubeconfig(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot read the kubeconfig: Is a directory") as caught:
        kubeconfigs.load_file(tmp_path)
    assert caught.value.where == str(tmp_path)


def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("{}")
    path.chmod(0)
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)  # root may read everything; nobody may not
    try:
        with pytest.raises(InvalidInput, match="cannot read the kubeconfig: Permission denied"):
            kubeconfigs.load_file(path)
    finally:
        os.seteuid(user)


POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


def test_in_a_pod(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("the ca")
    (tmp_path / "namespace").write_text("mine\n")
    connection = kubeconfigs.in_cluster(POD, tmp_path)
    assert connection == Connection(
        "https://10.0.0.1:443",
        "in-cluster service account",
        namespace="mine",
        tls=Tls(Pem(b"the ca", str(tmp_path / "ca.crt"))),
        auth=TokenFile(tmp_path / "token", str(tmp_path / "token")),
        environ=POD,
    )


def test_in_a_pod_with_ipv6_and_no_namespace(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("the ca")
    connection = kubeconfigs.in_cluster(POD | {"KUBERNETES_SERVICE_HOST": "fd00::1"}, tmp_path)
    assert (connection.server, connection.namespace) == ("https://[fd00::1]:443", "default")


@pytest.mark.parametrize("environ", [{}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}])
def test_outside_of_a_pod(environ: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="not inside a cluster") as caught:
        kubeconfigs.in_cluster(environ, tmp_path)
    assert caught.value.where == "in-cluster service account"


def test_a_pod_without_its_service_account(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot read the service account: No such file") as caught:
        kubeconfigs.in_cluster(POD, tmp_path)
    assert caught.value.where == str(tmp_path / "ca.crt")
