from __future__ import annotations

import pytest

from windlass.sandbox.apiserver.objects import selectors
from windlass.sandbox.apiserver.wire.api_status import StatusError

LABELS = {"app": "web", "tier": "2", "a/b": "x"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True), ("app=web", True), ("app==web", True), ("app=db", False), ("app!=db", True), ("gone!=x", True),
        ("app in (web, db)", True), ("app in (db)", False), ("app notin (db)", True), ("gone notin (x)", True),
        ("app", True), ("gone", False), ("!gone", True), ("!app", False), ("app=web,tier=2", True),
        ("app=web,tier in (1,3)", False), ("tier>1", True), ("tier<2", False), ("app>1", False), ("a/b=x", True),
    ],
)  # fmt: skip
def test_labels(text: str, expected: bool) -> None:
    assert selectors.matches_all(selectors.parse_label_selector(text), LABELS.get) is expected


def test_a_label_selector_object_is_read_like_its_text() -> None:
    rows = [{"key": "tier", "operator": "In", "values": ["2"]}, {"key": "gone", "operator": "DoesNotExist"}]
    selector = {"matchLabels": {"app": "web"}, "matchExpressions": rows}
    assert selectors.label_selector_requirements(selector) == selectors.parse_label_selector(
        "app=web,tier in (2),!gone"
    )


@pytest.mark.parametrize("text", ["a b", "app in web", "=x", "-a"])
def test_what_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(StatusError):
        selectors.parse_label_selector(text)


def test_fields_are_read_from_the_object() -> None:
    item = {"status": {"phase": "Running", "ready": True}, "spec": {}}
    assert selectors.field_text(item, "status.phase") == "Running"
    assert selectors.field_text(item, "status.ready") == "true"
    assert selectors.field_text(item, "spec.nodeName") == ""
    [requirement] = selectors.parse_field_selector("status.phase!=Failed")
    assert requirement.matches("Running")
