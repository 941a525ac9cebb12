"""TLS contexts for connections, and readable explanations of TLS errors."""

from __future__ import annotations

import os
import re
import ssl
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from windlass.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from windlass.kube.auth.connections import ClientCertificate, Pem, Tls

_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_MISTRUST = (18, 19, 20, 21)  # X509_V_ERR_* of OpenSSL: self-signed, unknown issuer, no chain to a CA
_TIME = {9: "is not valid yet", 10: "has expired"}
_NAMES = (62, 64)  # host name, IP address


def context_for(tls: Tls, client: ClientCertificate | None, environ: Mapping[str, str]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    if tls.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif tls.authorities is not None:
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # as in Go, an intermediate may be the trust anchor
        _trust(context, tls.authorities)
    else:
        _trust_system(context, environ)
    if client is not None:
        _show(context, client)
    return context


def explain(error: ssl.SSLError, trusted: str) -> tuple[str, str]:
    """The problem and a hint. `trust_description` names the certificate authorities that were used."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return _explain_distrust(error, trusted)
    reason = error.reason or "BROKEN_OFF"
    words = reason.lower().replace("_", " ")
    if reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"):
        return "the server does not speak TLS", "is it http:// instead of https://, or another port?"
    if "ALERT" in reason:
        return f"the server refused the TLS connection: {words}", "does it know our client certificate?"
    return f"the TLS handshake failed: {words}", ""


def _explain_distrust(error: ssl.SSLCertVerificationError, trusted: str) -> tuple[str, str]:
    if error.verify_code in _MISTRUST:
        return (
            f"the server's certificate is not signed by {trusted}",
            "is this the certificate authority of the cluster?",
        )
    if error.verify_code in _TIME:
        return f"the server's certificate {_TIME[error.verify_code]}", "renew it, or correct the clock of this machine"
    if error.verify_code in _NAMES:
        return "the server's certificate is for another name", "set tls-server-name to a name that the certificate has"
    return f"the server's certificate was rejected: {error.verify_message}", ""


def _trust(context: ssl.SSLContext, authorities: Pem) -> None:
    found = _CERTIFICATE.findall(authorities.content)
    try:
        context.load_verify_locations(cadata=b"\n".join(found).decode("ascii"))
    except (ssl.SSLError, ValueError):
        raise InvalidInput("no certificate authority in PEM form", where=authorities.where) from None


def _trust_system(context: ssl.SSLContext, environ: Mapping[str, str]) -> None:
    """Load the default CAs as OpenSSL does, but read SSL_CERT_FILE and SSL_CERT_DIR from `environ`."""
    built_in = ssl.get_default_verify_paths()
    for name, default, argument in (
        ("SSL_CERT_FILE", built_in.openssl_cafile, "cafile"),
        ("SSL_CERT_DIR", built_in.openssl_capath, "capath"),
    ):
        given = environ.get(name)
        if not given and not Path(default).exists():
            continue
        try:
            context.load_verify_locations(**{argument: given or default})
        except OSError as error:  # includes ssl.SSLError
            raise InvalidInput(f"no certificate authorities there: {error.strerror or 'not PEM'}", where=name) from None


def _show(context: ssl.SSLContext, client: ClientCertificate) -> None:
    if b"ENCRYPTED" in client.key.content:
        raise InvalidInput("the key is encrypted", where=client.key.where, hint="store it without a passphrase")
    with _readable(client.chain.content) as chain, _readable(client.key.content) as key:
        try:
            context.load_cert_chain(chain, key, password=lambda: b"")  # no passphrase prompt on the terminal
        except ssl.SSLError as error:
            if error.reason == "KEY_VALUES_MISMATCH":
                raise InvalidInput(
                    "the key does not belong to the client certificate", where=client.key.where
                ) from None
            wrong = client.key if _CERTIFICATE.search(client.chain.content) else client.chain
            raise InvalidInput("not a client certificate and key in PEM form", where=wrong.where) from None


@contextmanager
def _readable(secret: bytes) -> Iterator[str]:
    """A path to `secret`, because OpenSSL loads keys from files only.

    The file is in memory where memfd is available, otherwise a temporary file that is deleted on exit.
    """
    if hasattr(os, "memfd_create") and Path("/proc/self/fd").is_dir():
        with os.fdopen(os.memfd_create("pem"), "wb") as file:
            file.write(secret)
            file.flush()
            yield f"/proc/self/fd/{file.fileno()}"
    else:
        with tempfile.NamedTemporaryFile() as file:  # mode 0600
            file.write(secret)
            file.flush()
            yield file.name
