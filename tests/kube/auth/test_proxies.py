"""Proxies as Go finds them."""

from __future__ import annotations

import pytest

from tests.kube.leaks import assert_hidden
from windlass.errors import InvalidInput
from windlass.kube.auth import proxies
from windlass.kube.auth.connections import Proxy

P = "http://proxy.corp:3128"


@pytest.mark.parametrize(
    ("server", "environ", "expected"),
    [
        ("https://k.example:6443", {}, None),
        ("https://k.example:6443", {"HTTPS_PROXY": P}, P),
        ("https://k.example:6443", {"https_proxy": P}, P),
        ("https://k.example:6443", {"HTTPS_PROXY": P, "https_proxy": "http://other:1"}, P),
        ("https://k.example:6443", {"HTTPS_PROXY": "", "https_proxy": P}, P),
        ("https://k.example:6443", {"HTTP_PROXY": P, "ALL_PROXY": P}, None),
        ("http://k.example", {"HTTP_PROXY": P}, P),
        ("http://k.example", {"http_proxy": P, "HTTPS_PROXY": "http://other:1"}, P),
        ("https://k.example", {"HTTPS_PROXY": "proxy.corp:3128"}, P),
        ("https://k.example", {"HTTPS_PROXY": "https://proxy.corp"}, "https://proxy.corp"),
        ("https://k.example", {"HTTPS_PROXY": P + "/ignored?path"}, P),
        ("https://localhost:6443", {"HTTPS_PROXY": P}, None),
        ("https://127.0.0.1:6443", {"HTTPS_PROXY": P}, None),
        ("https://127.9.9.9:6443", {"HTTPS_PROXY": P}, None),
        ("https://[::1]:6443", {"HTTPS_PROXY": P}, None),
    ],
)
def test_the_environment_names_a_proxy(server: str, environ: dict[str, str], expected: str | None) -> None:
    found = proxies.proxy_for(server, environ)
    assert (found and found.url) == expected


@pytest.mark.parametrize(
    ("bypass", "server", "bypassed"),
    [
        ("*", "https://a.b.example", True),
        ("*", "https://10.0.0.1", True),
        ("other,*", "https://a.b.example", True),
        ("example", "https://example", True),
        ("b.example", "https://a.b.example", True),
        ("b.example", "https://b.example", True),
        ("B.Example", "https://A.b.EXAMPLE", True),
        ("b.example", "https://ab.example", False),
        ("b.example", "https://b.example.org", False),
        (".b.example", "https://a.b.example", True),
        (".b.example", "https://b.example", False),
        ("*.b.example", "https://a.b.example", True),
        ("*.b.example", "https://b.example", False),
        ("b.example:6443", "https://a.b.example:6443", True),
        ("b.example:6443", "https://a.b.example:443", False),
        ("b.example:443", "https://a.b.example", True),
        ("b.example:80", "http://a.b.example", True),
        (" x , b.example ,", "https://b.example", True),
        ("", "https://b.example", False),
        (":443", "https://b.example", False),
        ("10.0.0.1", "https://10.0.0.1", True),
        ("10.0.0.1", "https://10.0.0.2", False),
        ("10.0.0.1:6443", "https://10.0.0.1:6443", True),
        ("10.0.0.1:6443", "https://10.0.0.1", False),
        ("10.0.0.0/8", "https://10.9.9.9", True),
        ("10.0.0.7/8", "https://10.9.9.9", True),
        ("10.0.0.0/8", "https://11.0.0.1", False),
        ("10.0.0.0/8", "https://ten.example", False),
        ("10.0.0.0/99", "https://10.0.0.1", False),
        ("fd00::/8", "https://[fd00::1]:6443", True),
        ("fd00::/8", "https://10.0.0.1", False),
        ("fd00::1", "https://[fd00::1]", True),
        ("[fd00::1]:6443", "https://[fd00::1]:6443", True),
        ("[fd00::1]:6443", "https://[fd00::1]", False),
        ("[fd00::1]", "https://[fd00::1]", True),
    ],
)
@pytest.mark.parametrize("name", ["NO_PROXY", "no_proxy"])
def test_no_proxy_names_those_reached_directly(bypass: str, server: str, bypassed: bool, name: str) -> None:
    environ = {"HTTPS_PROXY": P, "HTTP_PROXY": P, name: bypass}
    assert (proxies.proxy_for(server, environ) is None) == bypassed


def test_an_explicit_proxy_is_used_whatever_the_environment_says() -> None:
    explicit = Proxy("http://explicit:1")
    environ = {"HTTPS_PROXY": P, "NO_PROXY": "*"}
    assert proxies.proxy_for("https://127.0.0.1", environ, explicit) is explicit


def test_user_and_password_are_passed_on_but_not_shown() -> None:
    proxy = proxies.parse_proxy("http://me:p%40ss:w0rd@proxy.corp:3128", "HTTPS_PROXY")
    assert proxy == Proxy(P, "me:p%40ss:w0rd")
    assert proxies.proxy_authorization(proxy) == "Basic bWU6cEBzczp3MHJk"
    assert proxies.url_with_userinfo(proxy) == "http://me:p%40ss:w0rd@proxy.corp:3128"
    assert_hidden(proxy, "p%40ss", "p@ss", "me:")


def test_a_proxy_without_password() -> None:
    proxy = proxies.parse_proxy(P, "HTTPS_PROXY")
    assert proxies.proxy_authorization(proxy) == ""
    assert proxies.url_with_userinfo(proxy) == P


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("socks5://me:s3cret@proxy:1080", "a proxy of the kind socks5:// is not supported"),
        ("socks5h://me:s3cret@proxy:1080", "a proxy of the kind socks5h:// is not supported"),
        ("http://", "not the URL of a proxy"),
        ("http://me:s3cret@proxy:port", "not the URL of a proxy"),
        ("http://me:s3cret@proxy:99999", "not the URL of a proxy"),
        ("http://me:s3cret@pro xy:80", "not the URL of a proxy"),
        ("http://me:s3cret@[::1:80", "not the URL of a proxy"),
        ("http://me:s3cret@pröxy:80", "not the URL of a proxy"),
        ("http://me:s3cret@pro..xy:80", "not the URL of a proxy"),
    ],
)
def test_a_proxy_that_cannot_be_used_is_refused(text: str, what: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        proxies.proxy_for("https://k.example", {"HTTPS_PROXY": text})
    assert caught.value.what == what
    assert caught.value.where == "HTTPS_PROXY"
    assert_hidden(caught.value, "s3cret")


def test_a_bad_proxy_is_no_matter_if_it_is_not_needed() -> None:
    assert proxies.proxy_for("https://k.example", {"HTTPS_PROXY": "socks5://x", "NO_PROXY": "k.example"}) is None
