"""ApplicationSet controller: one Application per set of generator parameters, recreated if it is deleted.

Supports the generators `list` and `git` with directories; templates may use `{{name}}` and `{{ .name }}`.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, ClassVar

from windlass.sandbox.apiserver.access.authentication import controller_user
from windlass.sandbox.argocd.application_specs import FINALIZER, NAMESPACE
from windlass.sandbox.argocd.comparison import APPLICATIONS
from windlass.sandbox.argocd.repositories import ComparisonFailure
from windlass.sandbox.controllers import object_builders
from windlass.sandbox.controllers.controller import CACHE_LAG, SandboxController

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windlass.sandbox.apiserver.wire.api_status import Body
    from windlass.sandbox.argocd.repositories import Repositories
    from windlass.sandbox.controllers.controller import StoreKey
    from windlass.sandbox.sandbox import Sandbox

REFRESH_ANNOTATION = "argocd.argoproj.io/application-set-refresh"
PARAMETER = re.compile(r"\{\{-?\s*\.?([\w.\[\]-]+?)\s*-?\}\}")
RESYNC_INTERVAL = 180.0  # seconds between reads of a git repository
UP_TO_DATE = ("ApplicationSetUpToDate", "All applications have been generated successfully")
GENERATED = ("ParametersGenerated", "Successfully generated parameters for all Applications")
GENERATION_ERROR = "ApplicationGenerationFromParamsError"


class ApplicationSetController(SandboxController):
    user = controller_user("argocd-applicationset-controller", NAMESPACE)
    primary = "applicationsets.argoproj.io"
    watched: ClassVar[tuple[str, ...]] = (APPLICATIONS,)

    def __init__(self, sandbox: Sandbox, repositories: Repositories, *, lag: float = CACHE_LAG) -> None:
        self._repositories = repositories
        super().__init__(sandbox, lag=lag)

    async def reconcile(self, key: StoreKey, application_set: Body) -> float | None:
        policy = (application_set["spec"].get("syncPolicy") or {}).get("applicationsSync", "sync")
        if application_set["metadata"].get("deletionTimestamp"):
            await self._finalize(application_set, disown=policy not in {"sync", "create-delete"})
            return None
        try:
            desired = {body["metadata"]["name"]: body for body in self._generate_applications(application_set)}
        except ComparisonFailure as broken:
            await self._update_status(application_set, str(broken))
            return RESYNC_INTERVAL
        current = {body["metadata"]["name"]: body for body in self._children(application_set)}
        for name, body in desired.items():
            if name not in current or policy in {"sync", "create-update"}:
                await self._create_or_update(application_set, body)
        excess = sorted(current.keys() - desired.keys()) if policy in {"sync", "create-delete"} else ()
        for name in excess:
            if not current[name]["metadata"].get("deletionTimestamp"):
                await self.delete(APPLICATIONS, current[name])
        if REFRESH_ANNOTATION in (application_set["metadata"].get("annotations") or {}):
            await self.patch(self.primary, application_set, {"metadata": {"annotations": {REFRESH_ANNOTATION: None}}})
        await self._update_status(self.reread(self.primary, application_set))
        return RESYNC_INTERVAL if any("git" in row for row in application_set["spec"]["generators"]) else None

    def _children(self, application_set: Body) -> list[Body]:
        """Applications with this set's controller owner reference; any other owner reference to it is not enough."""
        reference = object_builders.owner_reference(application_set)
        return [
            app
            for app in self.list_owned(APPLICATIONS, application_set)
            if reference in app["metadata"]["ownerReferences"]
        ]

    def _generate_applications(self, application_set: Body) -> Iterator[Body]:
        spec = application_set["spec"]
        for generator in spec["generators"]:
            for parameters in self._generator_parameters(generator):
                template = _substitute(spec["template"], dict(_flatten(parameters)))
                meta = {name: template["metadata"].get(name) for name in ("labels", "annotations", "finalizers")}
                if not meta["finalizers"] and not (spec.get("syncPolicy") or {}).get("preserveResourcesOnDeletion"):
                    meta["finalizers"] = [FINALIZER]
                meta |= {"name": template["metadata"]["name"], "namespace": application_set["metadata"]["namespace"]}
                yield {"metadata": meta, "spec": template["spec"]}

    def _generator_parameters(self, generator: Body) -> list[Body]:
        if "list" in generator:
            return list(generator["list"].get("elements") or ())
        git = generator.get("git") or {}
        if not git.get("directories"):
            raise ComparisonFailure(f"the sandbox knows no generator such as {sorted(generator)}")
        repository = self._repositories.open(git["repoURL"])
        files = repository.files(repository.resolve(git.get("revision", "")))
        folders = {str(folder) for path in files for folder in PurePosixPath(path).parents} - {"."}
        selected = [folder for folder in sorted(folders) if _is_selected(folder, git["directories"])]
        return [{**_directory_parameters(folder), "values": git.get("values") or {}} for folder in selected]

    async def _create_or_update(self, owner: Body, desired: Body) -> None:
        """Create an Application or update it; changes by other clients are overwritten."""
        meta = desired["metadata"]
        desired_meta = {name: value for name, value in meta.items() if value} | {
            "ownerReferences": [object_builders.owner_reference(owner)]
        }
        live = self.find(APPLICATIONS, meta["name"], meta["namespace"])
        if live is None:
            head = {"apiVersion": owner["apiVersion"], "kind": "Application"}
            await self.create(APPLICATIONS, {**head, "metadata": desired_meta, "spec": desired["spec"]})
            return
        live_meta = live["metadata"]
        if live_meta.get("deletionTimestamp"):
            return
        kept = {n: v for n, v in (live_meta.get("annotations") or {}).items() if n.endswith("argoproj.io/refresh")}
        desired_meta["annotations"] = {**(meta["annotations"] or {}), **kept}
        changed = [
            n
            for n in ("labels", "annotations", "finalizers", "ownerReferences")
            if desired_meta.get(n) != live_meta.get(n)
        ]
        if live["spec"] != desired["spec"] or any(desired_meta.get(name) or live_meta.get(name) for name in changed):
            meta = {**live_meta, **{name: desired_meta.get(name) for name in changed}}
            after = await self.client.update(APPLICATIONS, {**live, "metadata": meta, "spec": desired["spec"]})
            self._cache_own_write(APPLICATIONS, after)

    async def _finalize(self, application_set: Body, *, disown: bool) -> None:
        for child in self._children(application_set) if disown else ():
            await self.patch(APPLICATIONS, child, {"metadata": {"ownerReferences": None}})
        finalizers = application_set["metadata"].get("finalizers") or []
        if FINALIZER in finalizers:
            kept = [name for name in finalizers if name != FINALIZER]
            await self.patch(self.primary, application_set, {"metadata": {"finalizers": kept or None}})

    async def _update_status(self, application_set: Body, error: str = "") -> None:
        conditions: list[Body] = [*(application_set.get("status") or {}).get("conditions", ())]
        result = (GENERATION_ERROR, error) if error else UP_TO_DATE
        for condition_type, is_true, (reason, message) in (
            ("ErrorOccurred", bool(error), result),
            ("ParametersGenerated", not error, ("ErrorOccurred", error) if error else GENERATED),
            ("ResourcesUpToDate", not error, ("ErrorOccurred", error) if error else result),
        ):
            condition = {"type": condition_type, "status": str(is_true), "reason": reason, "message": message}
            conditions = object_builders.with_condition(conditions, condition, self.clock.timestamp())
        await self.write_status(
            self.primary, application_set, {**(application_set.get("status") or {}), "conditions": conditions}
        )


def _directory_parameters(folder: str) -> Body:
    name = PurePosixPath(folder).name
    normalized = re.sub(r"[^a-z0-9.-]+", "-", name.lower())
    segments = {f"path[{number}]": part for number, part in enumerate(folder.split("/"))}
    return {
        "path": folder,
        "path.path": folder,
        "path.basename": name,
        "path.basenameNormalized": normalized,
        **segments,
    }


def _is_selected(folder: str, rows: list[Body]) -> bool:
    def matches(pattern: str) -> bool:
        return pattern.count("/") == folder.count("/") and fnmatchcase(folder, pattern)

    selected = any(matches(row["path"]) for row in rows if not row.get("exclude"))
    return selected and not any(matches(row["path"]) for row in rows if row.get("exclude"))


def _flatten(row: Body, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in row.items():
        if isinstance(value, dict):
            yield from _flatten(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _substitute(template: Any, values: Body) -> Any:
    """A copy with known parameters substituted in keys and values; unknown ones stay as they are."""
    if isinstance(template, dict):
        return {_substitute(name, values): _substitute(value, values) for name, value in template.items()}
    if isinstance(template, list):
        return [_substitute(value, values) for value in template]
    if isinstance(template, str):
        return PARAMETER.sub(lambda found: str(values.get(found[1], found[0])), template)
    return template
