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
        "summary": "The result of the run as a whole.",
        "components": "Every component in the scope, ordered by name.",
        "failures": "Components and parents that failed, were interrupted or are not healthy, with what they block.",
        "metrics": "API calls, attempts and the estimated duration.",
        "timeline": "When each component was in progress, and the critical path.",
        "recommendations": "What to do next: first for the run, then for each failure.",
        "steps": "Deploy, teardown and dry runs: the steps of the plan, in the order in which they start.",
        "changes": "Plans and dry runs of a deploy: what each sync changes.",
        "unmet": "What prevents the run: dependencies outside the scope, or parents, in a wrong state.",
        "compliance": "Validate: findings about the rules that protect the dependency order.",
        "removal": "Teardown: objects that still exist, and volumes that were deleted.",
        "notices": "Facts that limit or explain the result.",
    },
    Summary: {
        "action": "The requested action.",
        "environment": "Name of the environment.",
        "platform": "Name of the platform; empty if no platform file was used.",
        "platform_file": "Path of the platform file, or `embedded reference platform`; empty if `platform` is empty.",
        "server": "URL of the API server.",
        "scope": "platform, stack:NAME or app:NAME; `all Applications` if no platform file was used.",
        "verdict": "The result of the run.",
        "exit_code": "The exit code of the process: 0 success, 1 failure, 2 partial, 4 timeout.",
        "health": "The health of the scope as a group; null after a teardown.",
        "started": "Start of the run.",
        "finished": "End of the run.",
        "duration": "Time from start to end.",
        "run_id": "Identifies the run; every operation that it started contains it.",
        "is_dry_run": "True if the run was a dry run and changed nothing.",
        "was_interrupted": "True if a signal stopped the run.",
        "counts": "Number of components by result, or by health if they have no result.",
    },
    Component: {
        "name": "Name of the component in the platform.",
        "stack": "Stack of the component.",
        "result": "Result of the component; null if the action only reads.",
        "health": "Health at the end of the run.",
        "is_critical": "True if the platform counts as failed when this component is not healthy.",
        "sync": "Sync status at the end of the run; empty if the component is not an Application.",
        "revisions": "Revisions of the last comparison, one for each source.",
        "causes": "If skipped: the components or parents that failed.",
        "attempts": "Number of attempts.",
        "duration": "Duration of all attempts; null if the component was not started.",
        "expected": "Expected duration; null if nothing had to be done.",
        "evidence": "What the decision is based on; null if there was no status to evaluate.",
    },
    Evidence: {
        "judged_at": "Time of the decision, by the server's clock.",
        "health": "The health that was evaluated.",
        "health_message": "Message of the health.",
        "sync": "Sync status at that time.",
        "wanted": "The desired revisions.",
        "shown": "The revisions in the status.",
        "operation": "The operation that the gate waited for.",
        "reconciled_at": "Start of the comparison that computed the health.",
        "proof": "Why the health is known to be fresh; null if there is no proof.",
        "is_drifting": "Out of sync although a sync of the desired revision succeeded.",
        "is_directly_verified": "False if the health comes only from Argo CD, as for another cluster.",
        "objects_read": "Number of objects of the Application that Windlass read itself.",
    },
    Failure: {
        "name": "The component.",
        "reason": "The reason code; stable.",
        "detail": "The cause in a sentence.",
        "blocks": "Components that were skipped or are not healthy because of this failure.",
        "diagnostics": "Lines that may explain it: events, conditions, the last lines of logs.",
    },
    Metrics: {
        "calls": "Requests to the API server.",
        "attempts": "Number of attempts of all components.",
        "estimated": "Estimated duration of the plan; null if there was no plan.",
    },
    ApiCalls: {
        "reads": "Requests that change nothing.",
        "writes": "Requests that change something.",
        "refreshes": "Requests for a refresh by Argo CD.",
    },
    Timeline: {
        "spans": "Started components, ordered by start.",
        "critical_path": "Critical path by actual durations; for a dry run, by expected durations.",
    },
    Span: {
        "name": "The component.",
        "started": "Start of the component.",
        "finished": "When its gate opened, it failed, or the run ended.",
    },
    CriticalPath: {"names": "In order; each depends on the previous one.", "duration": "Duration of the path."},
    Recommendation: {
        "detected": "The detected problem; stable.",
        "application": "The component; empty if the recommendation is about the run.",
        "sentence": "What it means and what to do.",
        "command": "The next command.",
    },
    Step: {
        "name": "The component.",
        "verb": "What the step does.",
        "why": "Why the step is needed.",
        "after": "Steps that must succeed first.",
        "revisions": "The revisions after the step, if they are known.",
    },
    ApplicationChange: {
        "name": "The component.",
        "effect": "Whether objects change, only the revision that it is pinned to, or neither.",
        "detail": "Why the effect is not known, or other remarks.",
        "objects": "The objects that change.",
        "is_truncated": "True if more objects change than are listed.",
    },
    ChangedObject: {
        "kind": "Kind with API group: `apps/Deployment`.",
        "namespace": "Namespace; empty for a cluster-scoped object.",
        "name": "Name of the object.",
        "effect": "What a sync does to the object; `out-of-sync` if it is only known that the object differs.",
        "fields": "The fields that change, with `plan --diff`.",
        "is_truncated": "True if more fields change than are listed.",
    },
    FieldChange: {
        "path": "Path of the field; list items by their name.",
        "before": "The live value, shortened; null if the field is added. Values of Secrets are hidden.",
        "after": "The value after the sync; null if the field is removed.",
    },
    Unmet: {
        "name": "The component or parent that prevents the run.",
        "needed_by": "The components in the scope that wait for it.",
        "why": "Why it prevents the run.",
        "is_known": "False if it only counts as present, because not all objects could be listed.",
    },
    Finding: {
        "rule": "The rule that the finding is about.",
        "application": "The component.",
        "what": "What was found.",
        "remedy": "How to resolve the finding.",
    },
    Removal: {
        "retained": "Objects that were kept on purpose.",
        "orphans": "Objects of removed applications that still exist.",
        "destroyed": "Volumes that were deleted with their data.",
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
        "apiVersion": {"const": API_VERSION, "description": "Changes if a field is removed or gets another meaning."},
        "kind": {"const": KIND, "description": "Kind of the document."},
    }
    report = _object_schema(Report)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": KIND,
        "description": "The report of one run of windlass. Times are in UTC, durations in seconds.",
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
