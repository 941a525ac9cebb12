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

_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----")
_UNTRUSTED_CODES = (18, 19, 20, 21)  # X509_V_ERR_* of OpenSSL: self-signed, unknown issuer, no chain to a CA
_VALIDITY_MESSAGES = {9: "is not valid yet", 10: "has expired"}
_NAME_MISMATCH_CODES = (62, 64)  # host name, IP address


def create_ssl_context(
    tls: Tls, client_certificate: ClientCertificate | None, environ: Mapping[str, str]
) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    if tls.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif tls.ca_bundle is not None:
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # as in Go, an intermediate may be the trust anchor
        _load_ca_bundle(context, tls.ca_bundle)
    else:
        _load_system_cas(context, environ)
    if client_certificate is not None:
        _load_client_certificate(context, client_certificate)
    return context


def explain_tls_error(error: ssl.SSLError, trust_description: str) -> tuple[str, str]:
    """The problem and a hint. `trust_description` names the certificate authorities that were used."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return _explain_verification_error(error, trust_description)
    reason = error.reason or "BROKEN_OFF"
    reason_text = reason.lower().replace("_", " ")
    if reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"):
        return "the server does not speak TLS", "is it http:// instead of https://, or another port?"
    if "ALERT" in reason:
        return f"the server refused the TLS connection: {reason_text}", "does it know our client certificate?"
    return f"the TLS handshake failed: {reason_text}", ""


def _explain_verification_error(error: ssl.SSLCertVerificationError, trust_description: str) -> tuple[str, str]:
    if error.verify_code in _UNTRUSTED_CODES:
        return (
            f"the server's certificate is not signed by {trust_description}",
            "is this the certificate authority of the cluster?",
        )
    if error.verify_code in _VALIDITY_MESSAGES:
        return (
            f"the server's certificate {_VALIDITY_MESSAGES[error.verify_code]}",
            "renew it, or correct the clock of this machine",
        )
    if error.verify_code in _NAME_MISMATCH_CODES:
        return "the server's certificate is for another name", "set tls-server-name to a name that the certificate has"
    return f"the server's certificate was rejected: {error.verify_message}", ""


def _load_ca_bundle(context: ssl.SSLContext, ca_bundle: Pem) -> None:
    certificates = _CERTIFICATE.findall(ca_bundle.content)
    try:
        context.load_verify_locations(cadata=b"\n".join(certificates).decode("ascii"))
    except (ssl.SSLError, ValueError):
        raise InvalidInput("no certificate authority in PEM form", where=ca_bundle.where) from None


def _load_system_cas(context: ssl.SSLContext, environ: Mapping[str, str]) -> None:
    """Load the default CAs as OpenSSL does, but read SSL_CERT_FILE and SSL_CERT_DIR from `environ`."""
    default_paths = ssl.get_default_verify_paths()
    for name, default, argument in (
        ("SSL_CERT_FILE", default_paths.openssl_cafile, "cafile"),
        ("SSL_CERT_DIR", default_paths.openssl_capath, "capath"),
    ):
        configured = environ.get(name)
        if not configured and not Path(default).exists():
            continue
        try:
            context.load_verify_locations(**{argument: configured or default})
        except OSError as error:  # includes ssl.SSLError
            raise InvalidInput(f"no certificate authorities there: {error.strerror or 'not PEM'}", where=name) from None


def _load_client_certificate(context: ssl.SSLContext, client: ClientCertificate) -> None:
    if b"ENCRYPTED" in client.key.content:
        raise InvalidInput("the key is encrypted", where=client.key.where, hint="store it without a passphrase")
    with _temporary_path(client.chain.content) as chain, _temporary_path(client.key.content) as key:
        try:
            context.load_cert_chain(chain, key, password=lambda: b"")  # no passphrase prompt on the terminal
        except ssl.SSLError as error:
            if error.reason == "KEY_VALUES_MISMATCH":
                raise InvalidInput(
                    "the key does not belong to the client certificate", where=client.key.where
                ) from None
            source = client.key if _CERTIFICATE.search(client.chain.content) else client.chain
            raise InvalidInput("not a client certificate and key in PEM form", where=source.where) from None


@contextmanager
def _temporary_path(secret: bytes) -> Iterator[str]:
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
