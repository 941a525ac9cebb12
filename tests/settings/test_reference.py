"""The embedded platform: counted, checked, and named as its matrix names it."""

from __future__ import annotations

from datetime import timedelta

from windlass.settings.source import SettingsSource

PLATFORM = SettingsSource({}).settings({}).platform


def test_43_applications_11_stacks_80_edges() -> None:
    assert len(PLATFORM.applications) == 43
    assert len(PLATFORM.stacks) == 11
    assert sum(map(len, PLATFORM.graph.dependencies.values())) == 80
    assert [len(wave) for wave in PLATFORM.graph.waves] == [8, 3, 3, 17, 11, 1]
    assert PLATFORM.managed_nodes == set(PLATFORM.applications)


def test_two_stacks_are_empty() -> None:
    assert [stack.name for stack in PLATFORM.stacks if not stack.applications] == [
        "backup-and-disaster-recovery",
        "ml-infra",
    ]


def test_some_of_its_edges() -> None:
    assert PLATFORM.graph.dependencies["backstage"] == ("cert-manager", "ingress-nginx", "keycloak", "sealed-secrets")
    assert len(PLATFORM.graph.dependencies["temporal"]) == 6
    assert PLATFORM.graph.dependencies["clusterapi"] == ()


def test_limits_by_profile() -> None:
    minutes = {
        name: PLATFORM.applications[name].timing.health // timedelta(minutes=1)
        for name in ("grafana", "zalando-pg", "temporal-db", "vault", "rook-ceph-cluster")
    }
    assert minutes == {"grafana": 5, "zalando-pg": 10, "temporal-db": 15, "vault": 15, "rook-ceph-cluster": 30}


def test_what_the_platform_cannot_do_without() -> None:
    critical = {name for name, application in PLATFORM.applications.items() if application.critical}
    assert {"rook-ceph-cluster", "vault", "zalando-pg", "ingress-nginx", "cert-manager"} <= critical


def test_its_longest_path_goes_through_storage() -> None:
    assert "rook-ceph-cluster" in PLATFORM.graph.critical_path(PLATFORM.expected_durations).names
