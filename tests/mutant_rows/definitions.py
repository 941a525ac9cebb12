"""Mutants of what defines the nodes: parents, the root, chart versions."""

from __future__ import annotations

from tests.mutant_rows import Mutant

PARENTS = "operations/test_parents.py"
NESTED = "operations/test_nested_parents.py"

DEFINITION_MUTANTS = (
    Mutant(
        "a root without nodes is believed",
        "INV-4",
        "operations/run/live_applications.py",
        "        keys.add((self._context.argocd_namespace, root_application.NAME))",
        "        pass",
        PARENTS,
    ),
    Mutant(
        "parents are not judged at the end",
        "INV-4",
        "operations/deploy.py",
        "        checked = rechecks.observe_definitions(checked, undefined, snapshot.taken_at)",
        "        pass",
        PARENTS,
    ),
    Mutant(
        "a chart version of two parts is a range",
        "INV-6",
        "core/platform/model/snapshots.py",
        'FIXED_VERSION = re.compile(r"v?\\d+(\\.\\d+){0,2}([-+][0-9A-Za-z.+-]+)?")',
        'FIXED_VERSION = re.compile(r"v?\\d+(\\.\\d+){2}([-+][0-9A-Za-z.+-]+)?")',
        "operations/test_chart_versions.py",
    ),
    Mutant(
        "a broken parent shows what it defines",
        "INV-4",
        "core/platform/model/snapshots.py",
        "        if self.errors:\n            return shortened",
        "        if False:\n            return shortened",
        PARENTS,
    ),
    Mutant(
        "the last comparison counts",
        "INV-4",
        "operations/run/live_applications.py",
        "                self._cluster.definitions.unanswered.add(key)",
        "                pass",
        PARENTS,
    ),
    Mutant(
        "each child is a cause",
        "INV-4",
        "core/platform/planning/definitions.py",
        '            return Failed(Reason.PARENT_BROKEN, f"{each}: {each.problem}", is_final=True, cause=str(each))',
        '            return Failed(Reason.PARENT_BROKEN, f"{each}: {each.problem}", is_final=True)',
        PARENTS,
    ),
    Mutant(
        "validate trusts what cannot be rendered",
        "INV-4",
        "operations/validate.py",
        "    snapshot = with_definition_health(snapshot, platform)",
        "    pass",
        PARENTS,
    ),
    Mutant(
        "what left git is unchanged",
        "INV-4",
        "core/platform/planning/definitions.py",
        "        return None if parent.defines_child else ",
        "        return None if parent else ",
        PARENTS,
    ),
    Mutant(
        "what only git defines is not told",
        "INV-4",
        "core/platform/planning/definitions.py",
        "    if snapshot.unknown_applications:",
        "    if False:",
        PARENTS,
    ),
    Mutant(
        "a root with automated sync is ours as it is",
        "INV-2",
        "argo/cd/root_application.py",
        '    if (spec.get("syncPolicy") or {}).get("automated") is not None:',
        "    if False:",
        PARENTS,
    ),
    Mutant(
        "fields of other clients stay on the root",
        "INV-2",
        "operations/deploy.py",
        "        surplus = root_application.surplus_fields(written, manifest)",
        "        surplus: RawObject = {}",
        PARENTS,
    ),
    Mutant(
        "a root without its label is ignored",
        "INV-2",
        "argo/cd/root_application.py",
        "        raise RootLabelMissing(live.metadata.namespace)",
        '        return ""',
        PARENTS,
    ),
    Mutant(
        "an empty selection is everything",
        "INV-1",
        "argo/cd/application_resources.py",
        "    if not is_out_of_sync or out_of_sync_resources(application, exclude=nodes):",
        "    if True:",
        NESTED,
    ),
    Mutant(
        "children of an outdated parent look in sync",
        "INV-1",
        "core/platform/planning/plans.py",
        "        if name in outdated and not failed:",
        "        if False:",
        NESTED,
    ),
    Mutant(
        "a parent is synced before it is known what it defines",
        "INV-1",
        "argo/cd/sync_step.py",
        "wait_before_sync(state, revisions) or self._wait_for_comparison(watch.current, state)",
        "wait_before_sync(state, revisions)",
        NESTED,
    ),
    Mutant(
        "an ApplicationSet that cannot be read is whole",
        "INV-4",
        "core/platform/planning/definitions.py",
        "        if each.read_error:",
        "        if False:",
        "operations/test_application_sets.py",
    ),
)
