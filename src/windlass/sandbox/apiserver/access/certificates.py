"""Temporary CA and server certificate for 127.0.0.1, created with the `openssl` program."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from windlass.errors import InvalidInput

DAYS = "365"
NAMES = "subjectAltName=IP:127.0.0.1,DNS:localhost"
NEW_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]


def made() -> tuple[ssl.SSLContext, bytes]:
    """TLS context for the server, and the CA certificate (PEM) for its clients."""
    with TemporaryDirectory(prefix="windlass-sandbox-") as name:
        place = Path(name)
        ca, key, chain = place / "ca.pem", place / "key.pem", place / "cert.pem"
        _openssl(*NEW_KEY, "-subj", "/CN=windlass-sandbox", "-keyout", str(place / "ca.key"), "-out", str(ca))
        signed = ["-CA", str(ca), "-CAkey", str(place / "ca.key"), "-addext", "basicConstraints=critical,CA:FALSE"]
        _openssl(*NEW_KEY, "-subj", "/CN=127.0.0.1", "-addext", NAMES, *signed, "-keyout", str(key), "-out", str(chain))
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(chain, key)
        return context, ca.read_bytes()


def _openssl(*arguments: str) -> None:
    command = ["openssl", "req", "-x509", "-days", DAYS, *arguments]
    try:
        subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - fixed program and arguments
    except FileNotFoundError:
        raise InvalidInput("TLS needs the `openssl` program", hint="leave out --tls to serve plain HTTP") from None
    except subprocess.CalledProcessError as error:
        raise InvalidInput(f"openssl failed: {error.stderr.decode(errors='replace').strip()}") from None
