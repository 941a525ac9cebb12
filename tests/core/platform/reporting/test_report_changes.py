"""What a plan says about the objects that change, in full and on one screen."""

from __future__ import annotations

from dataclasses import replace

from tests.core.platform.reporting.sample_reports import deployed, dry_run, reference
from windlass.core.platform.planning.field_changes import FieldChange
from windlass.core.platform.planning.object_changes import ApplicationChange, ChangedObject, Effect, ObjectEffect
from windlass.core.platform.reporting import report_changes, report_text

IMAGE = FieldChange("spec.image", "web:1", "web:2")
DEPLOYMENT = ChangedObject("apps/Deployment", "default", "web", ObjectEffect.UPDATE, (IMAGE,), is_truncated=True)
CHANGES = (
    ApplicationChange("web", Effect.CHANGES, objects=(DEPLOYMENT,), is_truncated=True),
    ApplicationChange("db", Effect.CHANGES, "its definition changes too", (replace(DEPLOYMENT, name="db"),)),
)


def test_lists_that_are_not_complete_say_so() -> None:
    lines = list(report_changes.change_lines(replace(dry_run(), changes=CHANGES[:1]), None))
    assert lines == [
        "  web",
        "    update apps/Deployment default/web",
        "      spec.image: web:1 -> web:2",
        "      and more fields",
        "    and more objects",
    ]


def test_a_screen_has_one_line_per_application() -> None:
    assert report_changes.change_items(replace(dry_run(), changes=CHANGES)) == [
        "web: update apps/Deployment default/web",
        "db: its definition changes too; update apps/Deployment default/db",
    ]


def test_root_causes_that_are_not_shown_are_named() -> None:
    broken = ["cert-manager", "rook-ceph-cluster", "prometheus", "strimzi-kafka-operator", "argo-rollouts"]
    text = report_text.text(deployed(reference(), broken))
    assert "5 root causes" in text
    assert "\n  and " in text
