"""The identity of a cluster: what differs from its record is told with both names."""

from __future__ import annotations

import pytest

from windlass.core.platform.identity import ClusterIdentity, identity_mismatch, recorded_identity

REQUESTED = ClusterIdentity("staging", "shop")


def test_what_is_recorded_is_read_again() -> None:
    assert recorded_identity(REQUESTED.annotations) == REQUESTED
    assert recorded_identity({"windlass.dev/platform": "shop"}) == ClusterIdentity("", "shop")
    assert recorded_identity({"other": "x", "windlass.dev/environment": ""}) is None


@pytest.mark.parametrize(
    ("recorded", "told"),
    [
        (None, ""),
        (REQUESTED, ""),
        (ClusterIdentity("staging", ""), ""),
        (ClusterIdentity("", "shop"), ""),
        (ClusterIdentity("production", "shop"), "environment production, platform shop"),
        (ClusterIdentity("staging", "bank"), "environment staging, platform bank"),
        (ClusterIdentity("", "bank"), "environment (none), platform bank"),
        (ClusterIdentity("a\nb" * 200, "shop"), f"environment {('a b' * 200)[:100]}, platform shop"),
    ],
)
def test_another_record_is_told_with_both_names(recorded: ClusterIdentity | None, told: str) -> None:
    message = identity_mismatch(recorded, REQUESTED)
    request = "the request is for environment staging, platform shop"
    assert message == (f"this cluster is recorded as {told}; {request}" if told else "")
