"""TLS contexts, and words for what TLS finds wrong."""

from __future__ import annotations

import os
import ssl
from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from tests.kube.certificate_authorities import authority, key_pem
from tests.kube.leaks import assert_hidden
from windlass.errors import InvalidInput
from windlass.kube.auth.connections import ClientCertificate, Pem, Tls
from windlass.kube.transport import certificates

if TYPE_CHECKING:
    from pathlib import Path


def client(chain: bytes, key: bytes) -> ClientCertificate:
    return ClientCertificate(Pem(chain, "f: client-certificate-data"), Pem(key, "f: client-key-data"))


def names(context: ssl.SSLContext) -> list[str]:
    return [dict(pair[0] for pair in found["subject"])["commonName"] for found in context.get_ca_certs()]  # type: ignore[misc]


def test_only_the_given_authority_is_trusted_and_nothing_old_is_spoken() -> None:
    pem = b"text before\n\xff" + authority().pem + b"text between\n" + authority("second").pem
    context = certificates.create_ssl_context(Tls(Pem(pem, "f: ca")), None, {"SSL_CERT_FILE": "/nowhere"})
    assert names(context) == ["our authority", "second"]
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert context.check_hostname


def test_insecure_asks_for_no_certificate() -> None:
    context = certificates.create_ssl_context(Tls(insecure=True), None, {})
    assert context.verify_mode == ssl.CERT_NONE
    assert not context.check_hostname


def test_without_an_authority_the_environment_names_the_system_s(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_bytes(authority().pem)
    environ = {"SSL_CERT_FILE": str(tmp_path / "ca.pem"), "SSL_CERT_DIR": str(tmp_path)}
    assert names(certificates.create_ssl_context(Tls(), None, environ)) == ["our authority"]


def test_without_anything_the_system_decides() -> None:
    assert certificates.create_ssl_context(Tls(), None, {}).verify_mode == ssl.CERT_REQUIRED


@pytest.mark.parametrize("content", [None, b"no certificate"])
def test_authorities_named_by_the_environment_must_be_there(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(InvalidInput, match="no certificate authorities there") as caught:
        certificates.create_ssl_context(Tls(), None, {"SSL_CERT_FILE": str(file)})
    assert caught.value.where == "SSL_CERT_FILE"


@pytest.mark.parametrize(
    "pem",
    [
        b"",
        b"junk \xff",
        b"-----BEGIN CERTIFICATE-----\ns3cret\n-----END CERTIFICATE-----",
        b"-----BEGIN CERTIFICATE-----\n\xff\n-----END CERTIFICATE-----",
        b"-----BEGIN CERTIFICATE-----\ncut",
    ],
)
def test_an_authority_must_be_a_certificate(pem: bytes) -> None:
    with pytest.raises(InvalidInput, match="no certificate authority in PEM form") as caught:
        certificates.create_ssl_context(Tls(Pem(pem, "f: ca")), None, {})
    assert caught.value.where == "f: ca"
    assert_hidden(caught.value, "s3cret")


MINE = authority().issue("me")
OTHER = authority().issue("other")
ENCRYPTED = key_pem(ec.generate_private_key(ec.SECP256R1()), b"passphrase")
LEGACY = b"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n"


@pytest.mark.parametrize(
    ("chain", "key", "what", "where"),
    [
        (MINE.certificate, OTHER.key, "the key does not belong to the client certificate", "f: client-key-data"),
        (MINE.certificate, ENCRYPTED, "the key is encrypted", "f: client-key-data"),
        (MINE.certificate, LEGACY, "the key is encrypted", "f: client-key-data"),
        (MINE.certificate, b"s3cret", "not a client certificate and key in PEM form", "f: client-key-data"),
        (MINE.certificate, b"", "not a client certificate and key in PEM form", "f: client-key-data"),
        (b"s3cret", MINE.key, "not a client certificate and key in PEM form", "f: client-certificate-data"),
        (b"", b"", "not a client certificate and key in PEM form", "f: client-certificate-data"),
    ],
    ids=[
        "other key",
        "encrypted",
        "encrypted the old way",
        "junk for a key",
        "no key",
        "junk for a certificate",
        "nothing",
    ],
)
def test_a_client_certificate_must_fit(chain: bytes, key: bytes, what: str, where: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        certificates.create_ssl_context(Tls(insecure=True), client(chain, key), {})
    assert (caught.value.what, caught.value.where) == (what, where)
    assert_hidden(caught.value, "s3cret", *key.split(b"\n")[1:2])


@pytest.mark.parametrize("memfd", [True, False])
def test_the_key_is_gone_from_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, memfd: bool) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    if not memfd:
        monkeypatch.delattr(os, "memfd_create", raising=False)
    certificates.create_ssl_context(Tls(insecure=True), client(MINE.certificate, MINE.key), {})
    assert list(tmp_path.iterdir()) == []


def refusal(reason: str) -> ssl.SSLError:
    error = ssl.SSLError(1, f"[SSL: {reason}] in the handshake")
    error.reason = reason
    return error


def distrust(code: int) -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_code, error.verify_message = code, "what OpenSSL says"
    return error


@pytest.mark.parametrize(
    ("error", "what"),
    [
        (distrust(20), "the server's certificate is not signed by X"),
        (distrust(18), "the server's certificate is not signed by X"),
        (distrust(10), "the server's certificate has expired"),
        (distrust(9), "the server's certificate is not valid yet"),
        (distrust(62), "the server's certificate is for another name"),
        (distrust(64), "the server's certificate is for another name"),
        (distrust(23), "the server's certificate was rejected: what OpenSSL says"),
        (refusal("WRONG_VERSION_NUMBER"), "the server does not speak TLS"),
        (refusal("TLSV1_ALERT_UNKNOWN_CA"), "the server refused the TLS connection: tlsv1 alert unknown ca"),
        (refusal("NO_CIPHERS_AVAILABLE"), "the TLS handshake failed: no ciphers available"),
        (refusal(""), "the TLS handshake failed: broken off"),
    ],
)
def test_what_tls_finds_wrong_is_said_plainly(error: ssl.SSLError, what: str) -> None:
    assert certificates.explain_tls_error(error, "X")[0] == what
