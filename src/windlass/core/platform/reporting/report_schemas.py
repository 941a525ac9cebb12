"""The JSON Schema of a report, generated from its dataclasses.

It is published in docs/schemas; a test checks that the published file is current.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from enum import Enum
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from windlass.core.platform.documents import API_VERSION, json_key
from windlass.core.platform.gate_values import Evidence
from windlass.core.platform.model.graphs import CriticalPath
from windlass.core.platform.planning.field_changes import FieldChange
from windlass.core.platform.planning.object_changes import ApplicationChange, ChangedObject
from windlass.core.platform.planning.plans import Step, Unmet
from windlass.core.platform.reporting.compliance import Finding
from windlass.core.platform.reporting.failures import Failure
from windlass.core.platform.reporting.recommendations import Recommendation
from windlass.core.platform.reporting.report_documents import KIND
from windlass.core.platform.reporting.reports import (
    ApiCalls,
    Component,
    Metrics,
    Removal,
    Report,
    Span,
    Summary,
    Timeline,
)

DESCRIPTIONS: Mapping[type, Mapping[str, str]] = {
    Report: {
        "summary": "How the run ended, as a whole.",
        "components": "Every component in the scope, by name.",
        "failures": "What failed, was cut short, or is not healthy; each with what it blocks.",
        "metrics": "What the run cost.",
        "timeline": "When what ran, and the chain that no parallelism could have shortened.",
        "recommendations": "What to do next: first about the run, then about each failure.",
        "steps": "Deploy, teardown and dry runs: what the plan had to do, in the order of starting.",
        "changes": "Plans and dry runs of a deploy: what each sync changes.",
        "unmet": "What keeps the run from beginning: needed by the scope, outside of it, not as it must be.",
        "compliance": "Validate: where the platform departs from the rules that keep its order.",
        "removal": "Teardown: what is still there, and which volumes are gone.",
        "notices": "What somebody should know who relies on this.",
    },
    Summary: {
        "action": "What was asked for.",
        "environment": "The environment's name.",
        "platform": "The platform's name; empty where no platform file was used.",
        "platform_file": "Path of the platform file, or `embedded reference platform`; empty as above.",
        "server": "URL of the API server.",
        "scope": "platform, stack:NAME or app:NAME; `all Applications` where no platform file was used.",
        "verdict": "How it ended.",
        "exit_code": "The exit code of the process: 0 success, 1 failure, 2 partial, 4 timeout.",
        "health": "The health of the scope as a group; null after a teardown.",
        "started": "When the run began.",
        "finished": "When the run ended.",
        "duration": "From one to the other.",
        "run_id": "Stands on every operation that the run started.",
        "is_dry_run": "Nothing was changed, on purpose.",
        "was_interrupted": "A signal ended it.",
        "counts": "Components by result; where there is none, by health.",
    },
    Component: {
        "name": "The component's name in the platform.",
        "stack": "The stack it belongs to.",
        "result": "What became of it; null where nothing was to be done but look.",
        "health": "Its health at the end.",
        "is_critical": "Without it the platform counts as failed.",
        "sync": "Argo CD's word on sync at the end; empty for what is no Application.",
        "revisions": "What it was last compared with, one for each source.",
        "causes": "If skipped: what failed.",
        "attempts": "How often it was tried.",
        "duration": "How long it took, all attempts together; null if it was not started.",
        "expected": "How long it usually takes; null where nothing was to be done.",
        "evidence": "What the judgement rests on; null where there was nothing to see.",
    },
    Evidence: {
        "judged_at": "When, by the server's clock.",
        "health": "The health that was judged.",
        "health_message": "What came with it.",
        "sync": "Sync as shown then.",
        "wanted": "The revisions that had to be shown.",
        "shown": "The revisions that were.",
        "operation": "The operation that the judgement waited for.",
        "reconciled_at": "When the comparison began that the health comes from.",
        "proof": "Why this health is not a stale one; null if it is not proved.",
        "is_drifting": "Out of sync although a sync of the wanted revision succeeded.",
        "is_directly_verified": "False where Argo CD's word is all there is, as for another cluster.",
        "objects_read": "How many objects of the Application were read, besides what Argo CD says of them.",
    },
    Failure: {
        "name": "The component.",
        "reason": "A stable word.",
        "detail": "A sentence.",
        "blocks": "What could not be done, or does not stand well, because of it.",
        "diagnostics": "Lines that may explain it: events, conditions, the last lines of logs.",
    },
    Metrics: {
        "calls": "Requests to the API server.",
        "attempts": "Of all components together.",
        "estimated": "How long the plan expected the run to take; null where there was no plan.",
    },
    ApiCalls: {
        "reads": "Requests that change nothing.",
        "writes": "Requests that change something.",
        "refreshes": "Requests that only ask Argo CD to look again.",
    },
    Timeline: {
        "spans": "What was started, first to start first.",
        "critical_path": "By what each really took; of a dry run, by what is expected.",
    },
    Span: {
        "name": "The component.",
        "started": "When it was started.",
        "finished": "When its gate opened, it failed, or the run ended.",
    },
    CriticalPath: {"names": "First to start first; each waited for the one before.", "duration": "Of all together."},
    Recommendation: {
        "detected": "What was found: a stable word.",
        "application": "The component it is about; empty if it is about the run.",
        "sentence": "What it means and what to do.",
        "command": "What to run next.",
    },
    Step: {
        "name": "The component.",
        "verb": "What is done to it.",
        "why": "What is not as wanted.",
        "after": "Steps that must have succeeded before.",
        "revisions": "What it will be at, as far as that is known.",
    },
    ApplicationChange: {
        "name": "The component.",
        "effect": "Whether objects change, only the revision that it is pinned to, or neither.",
        "detail": "Why the effect is not known, or what else a reader must know.",
        "objects": "The objects that change.",
        "is_truncated": "More objects change than are listed.",
    },
    ChangedObject: {
        "kind": "With the API group: `apps/Deployment`.",
        "namespace": "Empty for an object of the whole cluster.",
        "name": "The object's name.",
        "effect": "What a sync does to it; `out-of-sync` if Argo CD only says that it differs.",
        "fields": "The fields that change, with `plan --diff`.",
        "is_truncated": "More fields change than are listed.",
    },
    FieldChange: {
        "path": "Where the field is; items of lists by their name.",
        "before": "The live value, shortened; null if the field is added. Values of Secrets are hidden.",
        "after": "The value after the sync; null if the field is removed.",
    },
    Unmet: {
        "name": "The component or parent that prevents the run.",
        "needed_by": "The components in the scope that wait for it.",
        "why": "Why it prevents the run.",
    },
    Finding: {
        "rule": "The rule it departs from.",
        "application": "The component.",
        "what": "What was found.",
        "remedy": "What to do about it.",
    },
    Removal: {
        "retained": "What was kept on purpose.",
        "orphans": "What was left behind and belongs to nobody.",
        "destroyed": "Volumes that are gone, with their data.",
    },
}


_ANNOTATION_TYPES = {each.__name__: each for each in (datetime, timedelta, Mapping, *DESCRIPTIONS)}
"""Resolves annotations whose names are imported only under TYPE_CHECKING."""
_SCALAR_SCHEMAS: Mapping[object, Mapping[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    bool: {"type": "boolean"},
    datetime: {"type": "string", "format": "date-time"},
    timedelta: {"type": "number"},
}


def schema() -> dict[str, Any]:
    properties = {
        "apiVersion": {"const": API_VERSION, "description": "Changes when a reader would have to."},
        "kind": {"const": KIND, "description": "What this document is."},
    }
    report = _object_schema(Report)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": KIND,
        "description": "What one run of windlass did, found, cost and recommends. Times are UTC, durations seconds.",
        **report,
        "required": [*properties, *report["required"]],
        "properties": {**properties, **report["properties"]},
        "$defs": {
            each.__name__: _object_schema(each)
            for each in sorted(DESCRIPTIONS, key=lambda each: each.__name__)
            if each is not Report
        },
    }


def _object_schema(dataclass_type: type) -> dict[str, Any]:
    assert is_dataclass(dataclass_type)
    hints = get_type_hints(dataclass_type, localns=_ANNOTATION_TYPES)
    descriptions = DESCRIPTIONS[dataclass_type]
    properties = {
        json_key(each.name): {"description": descriptions[each.name], **_type_schema(hints[each.name])}
        for each in fields(dataclass_type)
    }
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(properties),
        "properties": properties,
    }


def _type_schema(hint: Any) -> dict[str, Any]:
    """The schema of a field's type; must match what `documents.to_json` writes."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is UnionType:
        (other,) = (each for each in arguments if each is not NoneType)
        return {"anyOf": [_type_schema(other), {"type": "null"}]}
    if origin is tuple:
        return {"type": "array", "items": _type_schema(arguments[0])}
    if origin is Mapping:
        return {"type": "object", "additionalProperties": _type_schema(arguments[1])}
    if hint in DESCRIPTIONS:
        return {"$ref": f"#/$defs/{hint.__name__}"}
    if issubclass(hint, Enum):
        return {"enum": [each.value for each in hint]}
    return dict(_SCALAR_SCHEMAS[hint])
