"""The plan file that a user approves, and the digest that binds it to a platform."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from windlass.core.platform.documents import API_VERSION, to_json
from windlass.core.platform.planning.approvals import DIGEST_LENGTH

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from windlass.core.platform.model.applications import Platform
    from windlass.core.platform.planning.approvals import ApprovedPlan, StepSummary
    from windlass.core.platform.planning.plans import Plan

KIND = "Plan"


def plan_document(plan: Plan, header: Mapping[str, str], summary: ApprovedPlan) -> dict[str, Any]:
    """`header`: what the plan is for, such as action and environment."""
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        **header,
        "cluster": summary.cluster,
        "root": summary.root,
        "rootRevision": summary.root_revision,
        "parents": list(summary.parents),
        "deleteForeign": list(summary.delete_foreign),
        "steps": [{**to_json(step), **_definition_digests(summary.steps[step.name])} for step in plan.steps],
        "unchanged": list(plan.unchanged),
        "criticalPath": to_json(plan.critical_path),
        "makespan": plan.makespan.total_seconds(),
    }


def _definition_digests(step: StepSummary) -> dict[str, str]:
    return {"definition": step.definition, "parent": step.parent}


def platform_digest(platform: Platform, explicit_dependencies: Collection[str]) -> str:
    """Digest of the effective platform: equal digests mean equal nodes, order, timeouts and limits."""
    content = {
        "nodes": {name: to_json(node) for name, node in platform.applications.items()},
        "dependencies": {name: sorted(needed) for name, needed in platform.graph.dependencies.items()},
        "stacks": [to_json(stack) for stack in platform.stacks],
        "managed": sorted(platform.managed_nodes),
        "explicit": sorted(explicit_dependencies),
        "limits": [platform.max_parallel, str(platform.barrier)],
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:DIGEST_LENGTH]
