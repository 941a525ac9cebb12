"""Reports as other programs get them from the process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import jsonschema

if TYPE_CHECKING:
    from tests.scenarios.clusters import Running

SCHEMA = Path(__file__).parents[2] / "docs/schemas/report.json"


def test_json_fits_the_published_schema(cluster: Running) -> None:
    ended = cluster.windlass("validate", "--all", "--format", "json")
    assert ended.code == 2
    jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text())).validate(json.loads(ended.stdout))


def test_junit_for_pipelines(cluster: Running) -> None:
    ended = cluster.windlass("validate", "--all", "--format", "junit")
    root = ET.fromstring(ended.stdout)
    assert ended.code == 2
    failed = {case.get("name") for case in root.iter("testcase") if case.find("failure") is not None}
    assert {"sick", "slow"} <= failed
    assert root.get("failures") == str(len(failed))
