"""Temporary CA and server certificate for 127.0.0.1, created with the `openssl` program."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from windlass.errors import InvalidInput

VALIDITY_DAYS = "365"
SUBJECT_ALT_NAMES = "subjectAltName=IP:127.0.0.1,DNS:localhost"
NEW_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]


def create_certificates() -> tuple[ssl.SSLContext, bytes]:
    """TLS context for the server, and the CA certificate (PEM) for its clients."""
    with TemporaryDirectory(prefix="windlass-sandbox-") as name:
        directory = Path(name)
        ca, key, certificate = directory / "ca.pem", directory / "key.pem", directory / "cert.pem"
        _run_openssl(*NEW_KEY, "-subj", "/CN=windlass-sandbox", "-keyout", str(directory / "ca.key"), "-out", str(ca))
        signing_options = [
            "-CA",
            str(ca),
            "-CAkey",
            str(directory / "ca.key"),
            "-addext",
            "basicConstraints=critical,CA:FALSE",
        ]
        _run_openssl(
            *NEW_KEY,
            "-subj",
            "/CN=127.0.0.1",
            "-addext",
            SUBJECT_ALT_NAMES,
            *signing_options,
            "-keyout",
            str(key),
            "-out",
            str(certificate),
        )
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate, key)
        return context, ca.read_bytes()


def _run_openssl(*arguments: str) -> None:
    command = ["openssl", "req", "-x509", "-days", VALIDITY_DAYS, *arguments]
    try:
        subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - fixed program and arguments
    except FileNotFoundError:
        what = "the sandbox needs the `openssl` program to serve TLS"
        raise InvalidInput(what, hint="install the package openssl") from None
    except subprocess.CalledProcessError as error:
        raise InvalidInput(f"openssl failed: {error.stderr.decode(errors='replace').strip()}") from None
