"""`make mutants`: changes of one line that break an invariant; the invariant's own test must see each of them.

A row is a name, the invariant, the file, the line as it is, the line as it would be wrong, and the test that must fail:
a file below tests/, a test in one, or `seeds`, which plays seeds of the simulation until one is wrong (`seeds:NAME`:
all of them with this dimension; `seeds:NAME:NAME`: with these; `seeds:NAME@17`: first this seed, which killed it once).
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.mutant_rows import Mutant
from tests.mutant_rows.approvals import APPROVAL_MUTANTS
from tests.mutant_rows.definitions import DEFINITION_MUTANTS
from tests.mutant_rows.edges import EDGE_MUTANTS
from tests.mutant_rows.health import HEALTH_MUTANTS
from tests.mutant_rows.order import ORDER_MUTANTS
from tests.mutant_rows.seeds import SEEDS, seed_mutants
from tests.mutant_rows.teardown import TEARDOWN_MUTANTS

HERE = Path(__file__).parents[1]
SOURCE = Path("src/windlass")


ORDER = "invariants/test_inv_1_dependencies_first.py"
PATH = "invariants/test_inv_2_single_path.py"
STATE = "invariants/test_inv_3_no_implicit_state.py"
FAILURES = "invariants/test_inv_4_failures_are_visible.py"
REVERSE = "invariants/test_inv_5_reverse_order.py"
AGAIN = "invariants/test_inv_6_idempotent.py"
HEALTH = "invariants/test_inv_7_health_is_true.py"
HOOKS = "invariants/test_inv_8_no_hooks.py"
LOCK, STEP = "operations/run/test_run_lock.py", "argo/cd/test_sync_step.py"
STALE = f"{ORDER}::test_health_of_before_the_sync_opens_no_gate"
MAX_SEEDS = 2000  # a mutant that survives so many counts as not killed
GATES, STEPS = "core/platform/gates.py", "argo/cd/sync_step.py"
FRESHNESS = "core/platform/freshness.py"
LEASE = "kube/leases.py"
ACCESS = "sandbox/test_access.py"

WRITTEN_MUTANTS = (
    Mutant(
        "gate ignores freshness", "INV-1", FRESHNESS,
        "        return _missing_comparison(history, Reason.NOT_FRESH, ",
        "        return Proof.LATER_COMPARISON or (",
        STALE,
    ),
    Mutant(
        "a revision seen before counts as new", "INV-1", FRESHNESS,
        "    if state.sync is SyncStatus.SYNCED and target.revisions not in history.earlier_revisions:",
        "    if state.sync is SyncStatus.SYNCED:",
        STALE,
    ),
    Mutant(
        "same second counts as later", "INV-1", FRESHNESS,
        "    if state.reconciled_at > finished:",
        "    if state.reconciled_at >= finished:",
        STALE,
    ),
    Mutant(
        "schedule forgets a dependency", "INV-1", "core/platform/planning/schedules.py",
        "        self._pending_dependencies = {name: len(needed) for name, needed in graph.dependencies.items()}",
        "        self._pending_dependencies = {name: len(needed[:1]) for name, needed in graph.dependencies.items()}",
        "core/platform/planning/test_schedules.py",  # the check before each start hides it from a whole run
    ),
    Mutant(
        "step looks at an old state", "INV-1", STEPS,
        "        watch.catch_up()  # ",
        "        pass  # ",
        ORDER,
    ),
    Mutant(
        "out of sync after a sync is drift at once", "INV-1", GATES,
        "    if may_predate_sync(history, state, now):",
        "    if False:",
        f"{ORDER}::test_out_of_sync_right_after_a_sync_is_no_drift_yet",
    ),
    Mutant(
        "operation without the run", "INV-2", "argo/cd/sync_requests.py",
        '        "info": [{"name": RUN_ID_KEY, "value": request.run_id}],',
        '        "info": [],',
        PATH,
    ),
    Mutant(
        "root moves by itself", "INV-2", "argo/cd/root_application.py",
        '            "project": "default",',
        '            "project": "default", "syncPolicy": {"automated": {}},',
        "argo/cd/test_root_application.py",
    ),
    Mutant(
        "bypasses are not told", "INV-2", "core/platform/reporting/compliance.py",
        "    if operation.revisions != state.previous_revisions:",
        "    if operation.revisions == state.previous_revisions:",
        PATH,
    ),
    *DEFINITION_MUTANTS,
    *EDGE_MUTANTS,
    *ORDER_MUTANTS,
    Mutant(
        "kubeconfig of the developer", "INV-3", "settings/variables.py",
        '    Setting("kubeconfig", "Kubeconfig file.", "--kubeconfig", "KUBECONFIG_PATH", metavar="FILE"),',
        '    Setting("kubeconfig", "Kubeconfig file.", "--kubeconfig", "KUBECONFIG", metavar="FILE"),',
        STATE,
    ),
    Mutant(
        "a file left behind", "INV-3", LEASE,
        "        spec = self._new_spec(lease)",
        '        spec = (open("windlass.lock", "w").close(), self._new_spec(lease))[1]',
        STATE,
    ),
    Mutant(
        "failed counts as succeeded", "INV-4", "orchestrators/embedded.py",
        "        result = Result.SKIPPED if ended.decision.blocked_by else Result.FAILED",
        "        result = Result.SKIPPED if ended.decision.blocked_by else Result.SUCCEEDED",
        FAILURES,
    ),
    Mutant(
        "dependents are not skipped", "INV-4", "core/platform/planning/schedules.py",
        "        skipped = sorted(self._graph.reversed().closure([name]) - {name} - self._finished)",
        "        skipped: list[str] = self.succeed(name) or [] if self._running.add(name) is None else []",
        FAILURES,
    ),
    Mutant(
        "verdict hides a failure", "INV-4", "core/platform/reporting/verdicts.py",
        "    if all(good):",
        "    if any(good):",
        FAILURES,
    ),
    Mutant(
        "exit code hides a failure", "INV-4", "core/platform/reporting/verdicts.py",
        "    Verdict.PARTIAL: ExitCode.PARTIAL,",
        "    Verdict.PARTIAL: ExitCode.SUCCESS,",
        FAILURES,
    ),
    Mutant(
        "the end is not looked at", "INV-4", "operations/deploy.py",
        "    ready = [each.name for each in outcomes if each.is_successful]",
        "    ready: list[str] = []",
        FAILURES,
    ),
    Mutant(
        "teardown goes forward", "INV-5", "core/platform/planning/plans.py",
        "        platform.graph.reversed(),",
        "        platform.graph,",
        REVERSE,
    ),
    Mutant(
        "going is as good as gone", "INV-5", GATES,
        "    if state is None:\n        return Open(",
        "    if state is None or state.is_deleting:\n        return Open(",
        REVERSE,
    ),
    Mutant(
        "too late is as good as gone", "INV-5", GATES,
        "    return _timeout(pending, history, limit, now) if now - history.started >= limit else pending\n",
        "    return Open(Evidence(now, Health.MISSING)) if now - history.started >= limit else pending\n",
        SEEDS,
    ),
    Mutant(
        "an Application takes all along", "INV-5", "argo/cd/removal_step.py",
        "        if not present.objects and not present.unreadable:",
        "        if present:",
        f"{REVERSE}::test_what_an_application_left_behind_is_waited_for",
    ),
    *TEARDOWN_MUTANTS,
    Mutant(
        "syncs what is right", "INV-6", "core/platform/planning/plans.py",
        "    if state.sync is SyncStatus.SYNCED or is_drifting(state, desired):",
        "    if is_drifting(state, desired):",
        AGAIN,
    ),
    Mutant(
        "refreshes what cannot move", "INV-6", "operations/run/live_applications.py",
        "        return {key for key in existing if applications[key].state.has_mutable_revision}",
        "        return set(existing)",
        AGAIN,
    ),
    Mutant(
        "refreshes are not counted", "INV-6", "argo/cd/refresher.py",
        "        self.count += 1",
        "        self.count += 0",
        AGAIN,
    ),
    Mutant(
        "lock without need", "INV-6", "operations/deploy.py",
        "    if planned.plan.is_empty and planned.root_manifest is None and not run.changes_identity:",
        "    if planned.plan.is_empty and planned.root_manifest is None and not planned.plan.unchanged:",
        AGAIN,
    ),
    *APPROVAL_MUTANTS,
    Mutant(
        "Progressing is good enough", "INV-7", GATES,
        "        case Health.HEALTHY:",
        "        case Health.HEALTHY | Health.PROGRESSING:",
        HEALTH,
    ),
    Mutant(
        "silence is health", "INV-7", "argo/health/builtin.py",
        '    return Health.UNKNOWN, "it has no condition that tells its health"',
        '    return Health.HEALTHY, ""',
        HEALTH,
    ),
    Mutant(
        "objects are not read", "INV-7", "argo/health/builtin.py",
        "    if available < desired:",
        "    if available < 0:",
        HEALTH,
    ),
    *HEALTH_MUTANTS,
    Mutant(
        "hooks are overlooked", "INV-8", "core/platform/reporting/compliance.py",
        '_ORDERING_HOOKS = {"PreSync", "PostSync"}',
        '_ORDERING_HOOKS = {"PreSync"}',
        HOOKS,
    ),
    Mutant(
        "internal hooks are blamed", "INV-8", "core/platform/reporting/compliance.py",
        "    return hook.type in _ORDERING_HOOKS and not hook.is_internal",
        "    return hook.type in _ORDERING_HOOKS",
        HOOKS,
    ),
    Mutant(
        "a write without the lock", "one run", LEASE,
        "        self._check_write = lease.check\n",
        "",
        STEP,
    ),
    Mutant(
        "a live holder is robbed", "one run", LEASE,
        "        is_expired = self.clock.monotonic() - since > LEASE_DURATION",
        "        is_expired = True",
        LOCK,
    ),
    Mutant(
        "writes over what it has not seen", "one run", "argo/cd/application_writer.py",
        '        meta = {**patch.get("metadata", {}), "resourceVersion": application.metadata.resource_version}',
        '        meta = {**patch.get("metadata", {})}',
        STEP,
    ),
    Mutant(
        "the lock is kept", "one run", LEASE,
        '                await self._update({"holderIdentity": ""})',
        "                pass",
        LOCK,
    ),
    Mutant(
        "anonymous callers are administrators", "owner only", "sandbox/apiserver/access/rbac.py",
        "        return MASTERS in user.groups or not (self.enforce or UNAUTHENTICATED in user.groups)",
        "        return MASTERS in user.groups or not self.enforce",
        ACCESS,
    ),
    Mutant(
        "web pages are served", "owner only", "sandbox/http_server.py",
        "        reject_foreign_pages(headers, port)\n",
        "",
        ACCESS,
    ),
    Mutant(
        "a body without a media type is read", "owner only", "sandbox/apiserver/http_routes.py",
        '    if http_request.body and verb != "patch" and not',
        '    if content_type and verb != "patch" and not',
        ACCESS,
    ),
    Mutant(
        "a file is written through a link", "owner only", "output_files.py",
        "                require_regular_file(path)\n                target.replace(path)",
        "                target.replace(path.resolve())",
        "test_output_files.py",
    ),
)  # fmt: skip
MUTANTS = (*WRITTEN_MUTANTS, *seed_mutants(WRITTEN_MUTANTS))


def tested(folder: Path, test: str) -> str:
    """Empty if a test passes on the sources in a folder, else what it prints."""
    path = f"{folder / 'src'}:{folder}"
    environ = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}  # noqa: TID251 - for a process
    if test.startswith(SEEDS):
        dimensions, _, seed = test.partition("@")
        only = [f"--only={name}" for name in dimensions.split(":")[1:] if name]
        known = _output(["-m", "tests.simulation", seed, *only], folder, environ) if seed else ""
        words = ["-m", "tests.simulation", "--until-wrong", "--seeds", str(MAX_SEEDS), *only]
        return known or _output(words, folder, environ)
    words = ["-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", f"tests/{test}"]
    return _output(words, folder, environ)


def _output(words: list[str], folder: Path, environ: dict[str, str]) -> str:
    """Empty if the program succeeds, else what it prints."""
    ran = subprocess.run([sys.executable, *words], cwd=folder, env=environ, capture_output=True, text=True, check=False)
    if ran.returncode > 1:
        sys.exit(f"{' '.join(words)} could not be run:\n{ran.stdout[-2000:]}{ran.stderr[-1000:]}")
    return ran.stdout if ran.returncode else ""


def verdict(mutant: Mutant, folder: Path) -> str:
    path = folder / SOURCE / mutant.file
    text = path.read_text()
    if text.count(mutant.old) != 1:
        return "its line is not there (once) any more"
    path.write_text(text.replace(mutant.old, mutant.new))
    try:
        return "killed" if tested(folder, mutant.test) else "SURVIVED"
    finally:
        path.write_text(text)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("only", nargs="*", help="words: mutants with one of them in name, invariant, file or test")
    words = parser.parse_args().only
    chosen = [
        m for m in MUTANTS if not words or any(word in f"{m.name} {m.invariant} {m.file} {m.test}" for word in words)
    ]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name in ("src", "tests", "pyproject.toml"):
            copy = shutil.copytree if (HERE / name).is_dir() else shutil.copy
            copy(HERE / name, folder / name)
        for test in dict.fromkeys(
            mutant.test for mutant in chosen if not mutant.test.startswith(SEEDS)
        ):  # `make sim` plays those
            if said := tested(folder, test):
                sys.exit(f"{test} fails without any mutant:\n{said[-3000:]}")
        found = []
        for mutant in chosen:
            found.append(verdict(mutant, folder))
            print(f"{mutant.invariant:8} {mutant.name:44} {mutant.file:34} {found[-1]}", flush=True)
    print(f"{found.count('killed')} of {len(found)} mutants killed")
    return 0 if set(found) == {"killed"} else 1


if __name__ == "__main__":
    sys.exit(main())
