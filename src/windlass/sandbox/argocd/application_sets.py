"""ApplicationSet controller: one Application per set of generator parameters, recreated if it is deleted.

Supports the generators `list` and `git` with directories; templates may use `{{name}}` and `{{ .name }}`.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, ClassVar

from windlass.sandbox.apiserver.access.authentication import controller
from windlass.sandbox.argocd.application_specs import CASCADE, NAMESPACE
from windlass.sandbox.argocd.comparison import APPLICATIONS
from windlass.sandbox.argocd.repositories import Broken
from windlass.sandbox.controllers import object_builders
from windlass.sandbox.controllers.controller import LAG, Actor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windlass.sandbox.apiserver.wire.api_status import Body
    from windlass.sandbox.argocd.repositories import Repositories
    from windlass.sandbox.controllers.controller import Place
    from windlass.sandbox.sandbox import Sandbox

REFRESH = "argocd.argoproj.io/application-set-refresh"
PARAMETER = re.compile(r"\{\{-?\s*\.?([\w.\[\]-]+?)\s*-?\}\}")
RESYNC = 180.0  # seconds between reads of a git repository
UP_TO_DATE = ("ApplicationSetUpToDate", "All applications have been generated successfully")
GENERATED = ("ParametersGenerated", "Successfully generated parameters for all Applications")
BROKEN = "ApplicationGenerationFromParamsError"


class ApplicationSets(Actor):
    user = controller("argocd-applicationset-controller", NAMESPACE)
    primary = "applicationsets.argoproj.io"
    watched: ClassVar[tuple[str, ...]] = (APPLICATIONS,)

    def __init__(self, sandbox: Sandbox, repositories: Repositories, *, lag: float = LAG) -> None:
        self._repositories = repositories
        super().__init__(sandbox, lag=lag)

    async def reconcile(self, place: Place, found: Body) -> float | None:
        policy = (found["spec"].get("syncPolicy") or {}).get("applicationsSync", "sync")
        if found["metadata"].get("deletionTimestamp"):
            await self._let_go(found, disown=policy not in {"sync", "create-delete"})
            return None
        try:
            wanted = {body["metadata"]["name"]: body for body in self._generated(found)}
        except Broken as broken:
            await self._tell(found, str(broken))
            return RESYNC
        current = {body["metadata"]["name"]: body for body in self._children(found)}
        for name, body in wanted.items():
            if name not in current or policy in {"sync", "create-update"}:
                await self._keep(found, body)
        beyond = sorted(current.keys() - wanted.keys()) if policy in {"sync", "create-delete"} else ()
        for name in beyond:
            if not current[name]["metadata"].get("deletionTimestamp"):
                await self.delete(APPLICATIONS, current[name])
        if REFRESH in (found["metadata"].get("annotations") or {}):
            await self.patch(self.primary, found, {"metadata": {"annotations": {REFRESH: None}}})
        await self._tell(self.again(self.primary, found))
        return RESYNC if any("git" in row for row in found["spec"]["generators"]) else None

    def _children(self, found: Body) -> list[Body]:
        """Applications with this set's controller owner reference; any other owner reference to it is not enough."""
        mine = object_builders.owner_reference(found)
        return [app for app in self.owned(APPLICATIONS, found) if mine in app["metadata"]["ownerReferences"]]

    def _generated(self, found: Body) -> Iterator[Body]:
        spec = found["spec"]
        for generator in spec["generators"]:
            for row in self._rows(generator):
                template = _filled(spec["template"], dict(_flat(row)))
                meta = {name: template["metadata"].get(name) for name in ("labels", "annotations", "finalizers")}
                if not meta["finalizers"] and not (spec.get("syncPolicy") or {}).get("preserveResourcesOnDeletion"):
                    meta["finalizers"] = [CASCADE]
                meta |= {"name": template["metadata"]["name"], "namespace": found["metadata"]["namespace"]}
                yield {"metadata": meta, "spec": template["spec"]}

    def _rows(self, generator: Body) -> list[Body]:
        if "list" in generator:
            return list(generator["list"].get("elements") or ())
        git = generator.get("git") or {}
        if not git.get("directories"):
            raise Broken(f"the sandbox knows no generator such as {sorted(generator)}")
        repository = self._repositories.at(git["repoURL"])
        files = repository.files(repository.commit(git.get("revision", "")))
        folders = {str(folder) for path in files for folder in PurePosixPath(path).parents} - {"."}
        chosen = [folder for folder in sorted(folders) if _is_chosen(folder, git["directories"])]
        return [{**_folder_row(folder), "values": git.get("values") or {}} for folder in chosen]

    async def _keep(self, owner: Body, wanted: Body) -> None:
        """Create an Application or update it; changes by other clients are overwritten."""
        meta = wanted["metadata"]
        mine = {name: value for name, value in meta.items() if value} | {
            "ownerReferences": [object_builders.owner_reference(owner)]
        }
        live = self.find(APPLICATIONS, meta["name"], meta["namespace"])
        if live is None:
            head = {"apiVersion": owner["apiVersion"], "kind": "Application"}
            await self.create(APPLICATIONS, {**head, "metadata": mine, "spec": wanted["spec"]})
            return
        given = live["metadata"]
        if given.get("deletionTimestamp"):
            return
        kept = {n: v for n, v in (given.get("annotations") or {}).items() if n.endswith("argoproj.io/refresh")}
        mine["annotations"] = {**(meta["annotations"] or {}), **kept}
        changed = [n for n in ("labels", "annotations", "finalizers", "ownerReferences") if mine.get(n) != given.get(n)]
        if live["spec"] != wanted["spec"] or any(mine.get(name) or given.get(name) for name in changed):
            meta = {**given, **{name: mine.get(name) for name in changed}}
            after = await self.calls.update(APPLICATIONS, {**live, "metadata": meta, "spec": wanted["spec"]})
            self._remembering(APPLICATIONS, after)

    async def _let_go(self, found: Body, *, disown: bool) -> None:
        for child in self._children(found) if disown else ():
            await self.patch(APPLICATIONS, child, {"metadata": {"ownerReferences": None}})
        finalizers = found["metadata"].get("finalizers") or []
        if CASCADE in finalizers:
            kept = [name for name in finalizers if name != CASCADE]
            await self.patch(self.primary, found, {"metadata": {"finalizers": kept or None}})

    async def _tell(self, found: Body, trouble: str = "") -> None:
        rows: list[Body] = [*(found.get("status") or {}).get("conditions", ())]
        ended = (BROKEN, trouble) if trouble else UP_TO_DATE
        for kind, holds, (reason, message) in (
            ("ErrorOccurred", bool(trouble), ended),
            ("ParametersGenerated", not trouble, ("ErrorOccurred", trouble) if trouble else GENERATED),
            ("ResourcesUpToDate", not trouble, ("ErrorOccurred", trouble) if trouble else ended),
        ):
            row = {"type": kind, "status": str(holds), "reason": reason, "message": message}
            rows = object_builders.with_condition(rows, row, self.sources.timestamp())
        await self.write_status(self.primary, found, {**(found.get("status") or {}), "conditions": rows})


def _folder_row(folder: str) -> Body:
    name = PurePosixPath(folder).name
    plain = re.sub(r"[^a-z0-9.-]+", "-", name.lower())
    segments = {f"path[{number}]": part for number, part in enumerate(folder.split("/"))}
    return {"path": folder, "path.path": folder, "path.basename": name, "path.basenameNormalized": plain, **segments}


def _is_chosen(folder: str, rows: list[Body]) -> bool:
    def fits(pattern: str) -> bool:
        return pattern.count("/") == folder.count("/") and fnmatchcase(folder, pattern)

    chosen = any(fits(row["path"]) for row in rows if not row.get("exclude"))
    return chosen and not any(fits(row["path"]) for row in rows if row.get("exclude"))


def _flat(row: Body, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in row.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _filled(template: Any, values: Body) -> Any:
    """A copy with known parameters substituted in keys and values; unknown ones stay as they are."""
    if isinstance(template, dict):
        return {_filled(name, values): _filled(value, values) for name, value in template.items()}
    if isinstance(template, list):
        return [_filled(value, values) for value in template]
    if isinstance(template, str):
        return PARAMETER.sub(lambda found: str(values.get(found[1], found[0])), template)
    return template
