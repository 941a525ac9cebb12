"""Mutants of approved plans, of the identity of a cluster, and of empty input."""

from __future__ import annotations

from tests.mutant_rows import Mutant

APPROVED = "operations/test_approved_plans.py"
IDENTITY = "operations/test_cluster_identity.py"

APPROVAL_MUTANTS = (
    Mutant(
        "what is edited while the root is compared is approved", "INV-2", "core/platform/planning/approvals.py",
        '        elif not step.parent and step.definition not in {"", before.definition}:',
        "        elif False:",
        "operations/test_approved_plans.py::test_what_is_edited_while_the_approved_root_is_compared_is_not_synced",
    ),
    Mutant(
        "a step takes whatever its branch leads to", "approval", "core/platform/planning/approvals.py",
        "    if new_definition is None:\n        return f",
        "    if new_definition is None:\n        return \"\" and f",
        APPROVED,
    ),
    Mutant(
        "a new definition may follow a branch", "approval", "core/platform/planning/approvals.py",
        "    if state.has_mutable_revision:\n        names",
        "    if False:\n        names",
        APPROVED,
    ),
    Mutant(
        "children follow a parent that is changed", "approval", "argo/cd/parent_sync.py",
        "self._run_id, sources=parent.sources)",
        "self._run_id)",
        "operations/test_nested_parents.py",
    ),
    Mutant(
        "a plan is not bound to the sources of parents", "approval", "core/platform/planning/approvals.py",
        "    return definition_digest(parent.sources) if parent and parent.updates_child else \"\"",
        "    return \"\"",
        "operations/test_nested_parents.py",
    ),
    Mutant(
        "approval is not checked under the lock", "approval", "operations/deploy.py",
        "    check_approved_plan(run.request, planned, root_is_written=writes_root)",
        "    pass",
        APPROVED,
    ),
    Mutant(
        "a plan of a branch is an approval", "approval", "core/platform/planning/approvals.py",
        "    if plan.root and not plan.root_revision:",
        "    if False:",
        APPROVED,
    ),
    Mutant(
        "a plan fits every cluster", "approval", "operations/cluster_identity.py",
        "    if approved.cluster != actual:",
        "    if False:",
        APPROVED,
    ),
    Mutant(
        "a teardown forgets its plan", "approval", "operations/teardown/teardown.py",
        "        check_approved_plan(run.request, planned)\n        result",
        "        result",
        APPROVED,
    ),
    Mutant(
        "another environment is welcome", "identity", "core/platform/identity.py",
        "    is_same_environment = recorded.environment in {\"\", requested.environment}",
        "    is_same_environment = True",
        IDENTITY,
    ),
    Mutant(
        "the record is not read under the lock", "identity", "operations/run/run_lock.py",
        "        record.check(free)",
        "        pass",
        IDENTITY,
    ),
    Mutant(
        "the reference platform is removed unasked", "identity", "operations/teardown/teardown.py",
        "    if request.platform_file == EMBEDDED_PLATFORM:",
        "    if False:",
        IDENTITY,
    ),
    Mutant(
        "any namespace is Argo CD's", "identity", "operations/observation.py",
        "    raise NoArgoCd(namespace, cluster.reader.server)",
        "    return",
        IDENTITY,
    ),
    Mutant(
        "a platform may be empty", "input", "settings/platforms.py",
        "    return definition if is_complete else [_empty_problem(layers, file)]",
        "    return definition",
        "settings/test_files.py",
    ),
)  # fmt: skip
