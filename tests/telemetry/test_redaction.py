"""Known secrets in every form they come back in, and what looks like one; names people search for stay."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windlass.telemetry.redaction import Redactor

KUBECONFIG = base64.b64encode(b"apiVersion: v1\nkind: Config\nusers: [{name: me, user: {token: T0ken}}]\n").decode()


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("Authorization: Bearer abc.def", "Authorization: Bearer [redacted]"),
        ("Authorization: Basic bWU6cHc=", "Authorization: Basic [redacted]"),
        ("clone https://me:p@ss@git.example/x", "clone https://[redacted]@git.example/x"),
        ('{"password": "two words"}', '{"password": [redacted]}'),
        ("token='two words' failed", "token=[redacted] failed"),
        (f"KUBECONFIG_DATA is {KUBECONFIG}", "KUBECONFIG_DATA is [redacted]"),
        ("key AKIAIOSFODNN7EXAMPLEwJalrXUtnFEMI", "key [redacted]"),
        ("sent 3f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c", "sent [redacted]"),
        ("sent zz9a8b7c6d5e4f3a2b1c0d9e8f7a", "sent [redacted]"),
        ("-----BEGIN EC PRIVATE KEY-----\nabc\n-----END EC PRIVATE KEY-----", "[redacted]"),
    ],
)
def test_what_looks_like_a_secret_is_hidden(said: str, shown: str) -> None:
    assert Redactor()(said) == shown


@pytest.mark.parametrize(
    "said",
    [
        "StatefulSet/monitoring/prometheus-kube-prometheus-stack-prometheus-0 is Progressing",
        "pod kube-prometheus-stack-grafana-6d4f9b7c8d-x2v9q restarts",
        "at 1f3a9c2b4d5e, wanted is 0123456789ab",
        "/config/health/ceph.rook.io_CephCluster.lua:12: attempt to index nil",
        "CustomResourceDefinition/cephobjectstoreusers.ceph.rook.io is missing",
        "run 2f1c7f4e-9a54-4c1a-8f0e-6f3b2a1c0d9e holds the lock",
    ],
)
def test_names_stay(said: str) -> None:
    assert Redactor(["hunter2"])(said) == said


def test_a_file_of_secrets_is_known_by_its_parts() -> None:
    registry = json.dumps({"auths": {"r.example": {"username": "bob", "password": "correct horse", "auth": "Ym9i"}}})
    redact = Redactor([registry, "first line here\nsecond line here\n"])
    assert redact("correct horse, Ym9i, bob") == "[redacted], [redacted], bob"
    assert redact("read: second line here") == "read: [redacted]"


def test_what_is_too_short_to_be_one_stays() -> None:
    assert Redactor(["", "abc", "\n"])("abc\n") == "abc\n"


FORMS = [
    str,
    lambda secret: json.dumps(secret)[1:-1],
    lambda secret: repr(secret)[1:-1],
    lambda secret: quote(secret, safe=""),
    lambda secret: base64.b64encode(secret.encode()).decode(),
    lambda secret: base64.urlsafe_b64encode(secret.encode()).decode(),
]


@settings(deadline=None)
@given(
    secret=st.text(st.characters(codec="utf-8"), min_size=4).filter(lambda secret: len(secret.strip()) >= 4),
    around=st.text(st.characters(codec="utf-8")),
    form=st.sampled_from(FORMS),
)
def test_a_known_secret_never_shows(secret: str, around: str, form: object) -> None:
    assert callable(form)
    written = form(secret)
    shown = Redactor([secret])(f"{around}{written}{around}")
    assert written not in shown.replace("[redacted]", "\0")
