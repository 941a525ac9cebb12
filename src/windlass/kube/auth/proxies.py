"""Proxy selection from kubeconfig and environment, by the rules of Go's net/http. Pure functions."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from windlass.errors import InvalidInput
from windlass.kube.auth.auth_headers import basic_header
from windlass.kube.auth.connections import Proxy

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

DEFAULT_PORTS = {"http": 80, "https": 443}

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def proxy_for(server: str, environ: Mapping[str, str], explicit: Proxy | None = None) -> Proxy | None:
    """The proxy for `server`, or `None`.

    An explicit proxy (kubeconfig `proxy-url`) always applies. One from the environment applies unless NO_PROXY matches
    or the server is localhost or a loopback address.
    """
    if explicit is not None:
        return explicit
    url = urlsplit(server)
    names = (f"{url.scheme.upper()}_PROXY", f"{url.scheme}_proxy")
    name = next((name for name in names if environ.get(name)), "")
    no_proxy = environ.get("NO_PROXY") or environ.get("no_proxy") or ""
    if not name or not _uses_proxy(url.hostname or "", url.port or DEFAULT_PORTS[url.scheme], no_proxy):
        return None
    return parse_proxy(environ[name], where=name)


def url_with_userinfo(proxy: Proxy) -> str:
    """The URL with user name and password, as ExecCredential hands it to an exec plugin. Never log it."""
    return proxy.url.replace("://", f"://{proxy.userinfo}@", 1) if proxy.userinfo else proxy.url


def proxy_authorization(proxy: Proxy) -> str:
    """The value of Proxy-Authorization; empty if the proxy's URL has no user name and password."""
    username, _, password = proxy.userinfo.partition(":")
    return basic_header(unquote(username), unquote(password)) if proxy.userinfo else ""


def proxy_secrets(proxy: Proxy) -> tuple[str, ...]:
    """The password of the proxy, alone and with its user, as in the URL and decoded."""
    password = proxy.userinfo.partition(":")[2]
    return (proxy.userinfo, password, unquote(password), proxy_authorization(proxy).partition(" ")[2])


def parse_proxy(text: str, where: str) -> Proxy:
    """Parse a proxy URL; the scheme defaults to http. Errors do not quote the URL, which may hold a password."""
    text = text if "://" in text else f"http://{text}"
    try:
        url = urlsplit(text)
        stripped_url = f"{url.scheme}://{url.netloc.rpartition('@')[2]}"
        usable = is_valid_host(url.hostname) and url.port != 0 and stripped_url.isascii() and stripped_url.isprintable()
    except ValueError:
        usable = False
    if not usable:
        raise InvalidInput("not the URL of a proxy", where=where, hint="write http://host:port")
    if url.scheme not in DEFAULT_PORTS:
        raise InvalidInput(
            f"a proxy of the kind {url.scheme}:// is not supported",
            where=where,
            hint="use an http:// or https:// proxy",
        )
    return Proxy(stripped_url, userinfo=url.netloc.rpartition("@")[0])


def is_valid_host(name: str | None) -> bool:
    """Whether a name or address can be looked up: Python's resolver and TLS break on empty and overlong labels."""
    if not name or not name.isprintable() or " " in name:
        return False
    try:
        name.encode("idna")
    except UnicodeError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Whether what is sent to `host` stays on this machine."""
    address = _parse_address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def _uses_proxy(host: str, port: int, no_proxy: str) -> bool:
    if is_loopback(host):
        return False
    address = _parse_address(host)
    return not any(rule.matches(host, address, port) for rule in _parse_no_proxy(no_proxy))


@dataclass(frozen=True, slots=True)
class _NoProxyRule:
    """One entry of NO_PROXY: a network, or a domain (`.suffix` matches subdomains only). An empty port matches any."""

    network: ipaddress.IPv4Network | ipaddress.IPv6Network | None = None
    domain: str = ""
    port: str = ""

    def matches(self, host: str, address: _Address | None, port: int) -> bool:
        if self.port not in ("", str(port)):
            return False
        if self.network is not None:
            return address is not None and address in self.network
        if self.domain.startswith("."):
            return host.endswith(self.domain)
        return self.domain in ("*", host) or host.endswith(f".{self.domain}")


def _parse_no_proxy(no_proxy: str) -> Iterator[_NoProxyRule]:
    for entry in no_proxy.lower().split(","):
        text = entry.strip()
        if "/" in text:
            if (network := _parse_network(text)) is not None:
                yield _NoProxyRule(network)
            continue
        host, port = _split_port(text)
        if (network := _parse_network(host)) is not None:
            yield _NoProxyRule(network, port=port)
        elif host:
            yield _NoProxyRule(domain=host.removeprefix("*") if host.startswith("*.") else host, port=port)


def _split_port(text: str) -> tuple[str, str]:
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        return host, rest.removeprefix(":")
    host, colon, port = text.rpartition(":")
    return (host, port) if colon and ":" not in host else (text, "")


def _parse_address(host: str) -> _Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _parse_network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None
