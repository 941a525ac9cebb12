"""The published schema is that of the classes; every report fits it, and nothing else does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from hypothesis import given

from tests.core.platform.reporting.sample_reports import SAMPLES, any_reports, partial_deploy
from windlass.core.platform.reporting.report_documents import document
from windlass.core.platform.reporting.report_schemas import DESCRIPTIONS, schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from windlass.core.platform.reporting.reports import Report

PUBLISHED = Path(__file__).parents[4] / "docs/schemas/report.json"
VALIDATOR = jsonschema.Draft202012Validator(schema(), format_checker=jsonschema.FormatChecker())


def text() -> str:
    return json.dumps(schema(), indent=2) + "\n"


def written(report: Report) -> Any:
    """As a reader gets it."""
    return json.loads(json.dumps(document(report)))


def test_the_published_schema_is_the_one_of_the_classes() -> None:
    """After a change: python -m tests.core.platform.reporting.test_report_schemas writes it anew."""
    assert PUBLISHED.read_text() == text()
    jsonschema.Draft202012Validator.check_schema(schema())


@pytest.mark.parametrize("name", SAMPLES)
def test_a_report_of_each_action_fits(name: str) -> None:
    VALIDATOR.validate(written(SAMPLES[name]))


@given(any_reports())
def test_any_report_fits(report: Report) -> None:
    VALIDATOR.validate(written(report))


@pytest.mark.parametrize(
    "change",
    [
        lambda made: made.update(surprise=1),
        lambda made: made.update(apiVersion="windlass.dev/v2"),
        lambda made: made.pop("metrics"),
        lambda made: made["summary"].update(verdict="splendid"),
        lambda made: made["summary"].update(duration="90 s"),
        lambda made: made["components"][0].update(is_critical=True),
        lambda made: made["components"][0]["evidence"].pop("proof"),
        lambda made: made["timeline"]["spans"].append(["ceph", "2026-11-15T21:00:00Z", "2026-11-15T21:01:00Z"]),
        lambda made: made["summary"]["counts"].update(failed="many"),
    ],
)
def test_what_is_no_report_does_not_fit(change: Callable[[Any], object]) -> None:
    made = written(partial_deploy())
    change(made)
    assert not VALIDATOR.is_valid(made)


def objects(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        if "properties" in node:
            yield node
        for each in node.values():
            yield from objects(each)


def test_every_field_is_described_once_and_nothing_may_be_added() -> None:
    found = list(objects(schema()))
    assert len(found) == len(DESCRIPTIONS)
    for each in found:
        assert each["additionalProperties"] is False
        assert each["required"] == list(each["properties"])
        for field in each["properties"].values():
            assert field["description"].endswith(".")


def test_no_description_outlives_its_field() -> None:
    for owner, described in DESCRIPTIONS.items():
        assert list(described) == list(owner.__dataclass_fields__)  # type: ignore[attr-defined]


if __name__ == "__main__":
    PUBLISHED.write_text(text())
