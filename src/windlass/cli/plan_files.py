"""Plan files: `plan --out` writes them, `deploy --plan` and `teardown --plan` read them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec

from windlass import __version__, output_files
from windlass.core.platform.planning import plan_documents
from windlass.core.platform.planning.approvals import ApprovedPlan, StepSummary, approval_problems
from windlass.core.platform.planning.plans import Verb  # noqa: TC001 - msgspec needs it at run time
from windlass.core.platform.reporting.reports import Action
from windlass.errors import InvalidInput
from windlass.kube.bounded_files import read_file
from windlass.printable_text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from windlass.operations.plan import PlanResult
    from windlass.settings.settings import Settings

FIELD_NAMES = {"volumePolicy": "volume_policy"}
NEW_PLAN_HINT = "make a new one: windlass plan --out FILE"
Name = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", max_length=253)]
Revision = Annotated[str, msgspec.Meta(pattern=r"^[!-~]*$")]


class _PlanFileStep(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: Name
    verb: Verb
    why: str
    after: tuple[Name, ...]
    revisions: tuple[Revision, ...]
    definition: Revision
    parent: Revision


class _CriticalPath(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    names: tuple[Name, ...]
    duration: float


class PlanFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The schema of a plan file, as written by `plan_documents.plan_document`."""

    api_version: Literal["windlass.dev/v1alpha1"]
    kind: Literal["Plan"]
    action: str
    environment: str
    scope: str
    platform: str
    version: str
    volume_policy: str
    cluster: str
    root: str
    root_revision: Revision
    parents: tuple[str, ...]
    delete_foreign: tuple[Name, ...]
    steps: tuple[_PlanFileStep, ...]
    unchanged: tuple[Name, ...]
    critical_path: _CriticalPath
    makespan: float


def write_plan(path: Path, result: PlanResult, settings: Settings, action: Action) -> None:
    """Write a plan. Why a step is needed may quote the cluster, so it is redacted; the rest is what is compared."""
    redact = settings.cluster.credentials.redactor.printable
    steps = tuple(replace(step, why=redact(step.why)) for step in result.plan.steps)
    plan = replace(result.plan, steps=steps)
    document = plan_documents.plan_document(plan, _plan_header(settings, action), result.summary)
    content = msgspec.json.format(msgspec.json.encode(document), indent=2)
    try:
        output_files.write_file(path, content + b"\n")
    except OSError as error:
        raise InvalidInput(f"the plan cannot be written: {error.strerror}", where=str(path)) from None


def read_plan(path: str, settings: Settings, action: Action) -> ApprovedPlan:
    try:
        content = read_file(Path(path))
    except OSError as error:
        raise InvalidInput(f"the plan cannot be read: {error.strerror}", where=path) from None
    return parse_plan(content, _plan_header(settings, action), path)


def parse_plan(content: bytes, header: Mapping[str, str], path: str) -> ApprovedPlan:
    """Parse a plan file.

    Raises InvalidInput with the JSON path if the content is not a plan, if the plan is for something else than `header`
    says, if its steps contradict each other, or if it does not name every revision.
    """
    try:
        file = msgspec.json.decode(content, type=PlanFile)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        text = one_line(str(error))  # it quotes text from the file
        what, _, json_path = text.partition(" - at `")
        raise InvalidInput(
            f"this is no plan: {what}", where=f"{path}: {json_path.strip('`') or '$'}", hint=NEW_PLAN_HINT
        ) from None
    for json_path, what in (*_header_mismatches(file, header), *_contradictions(file)):
        raise InvalidInput(what, where=f"{path}: {json_path}", hint=NEW_PLAN_HINT)
    steps = {
        step.name: StepSummary(str(step.verb), step.after, step.revisions, step.definition, step.parent)
        for step in file.steps
    }
    plan = ApprovedPlan(
        steps,
        frozenset(file.unchanged),
        file.root,
        file.root_revision,
        file.parents,
        file.cluster,
        file.delete_foreign,
    )
    for problem in approval_problems(plan):
        raise InvalidInput(f"this plan cannot be approved: {problem}", where=f"{path}: $", hint=NEW_PLAN_HINT)
    return plan


def _header_mismatches(file: PlanFile, header: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, expected in header.items():
        if (actual := getattr(file, FIELD_NAMES.get(name, name))) != expected:
            yield f"$.{name}", f"this plan is for {name} {actual!r}, not {expected!r}"


def _contradictions(file: PlanFile) -> Iterator[tuple[str, str]]:
    """Names that occur twice, and steps that precede their dependencies: steps are listed in execution order."""
    seen: set[str] = set()
    for number, step in enumerate(file.steps):
        if step.name in seen:
            yield f"$.steps[{number}].name", f"{step.name} is listed twice"
        for index, name in enumerate(step.after):
            if name not in seen:
                yield f"$.steps[{number}].after[{index}]", f"{name} is no step before {step.name}"
        seen.add(step.name)
    for number, name in enumerate(file.unchanged):
        if name in seen:
            yield f"$.unchanged[{number}]", f"{name} is listed twice"
        seen.add(name)


def _plan_header(settings: Settings, action: Action) -> Mapping[str, str]:
    platform = settings.platform
    return {
        "action": str(action),
        "environment": settings.environment_name,
        "scope": str(settings.scope),
        "platform": f"{platform.name} {plan_documents.platform_digest(platform, settings.explicit_dependencies)}",
        "version": __version__,
        "volumePolicy": str(settings.volume_policy) if action is Action.TEARDOWN else "",
    }
