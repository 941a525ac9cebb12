"""The root Application, which defines all others and is only ever changed by `deploy`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from windlass.argo.cd.applications import APPLICATIONS
from windlass.core.platform.identity import ClusterIdentity
from windlass.core.platform.model.snapshots import COMMIT_HASH
from windlass.errors import WindlassError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from windlass.argo.cd.applications import Application
    from windlass.kube.client.objects import RawObject

NAME = "platform-root"
MANAGED_BY_LABELS = {"app.kubernetes.io/managed-by": "windlass"}
REVISION_VARIABLE = "$ARGOCD_APP_REVISION"
"""Argo CD replaces this variable with the commit, which pins each child to the commit that defines it."""


@dataclass(frozen=True, slots=True)
class RootApplication:
    """A Helm chart in a Git repository, whose templates are the Applications of the platform."""

    repository: str
    revision: str
    path: str
    parameters: Mapping[str, str]

    def __str__(self) -> str:
        values = ", ".join(f"{name}={value}" for name, value in sorted(self.parameters.items()))
        return f"{self.path} of {self.repository} at {self.revision} with {values or 'nothing'}"

    @property
    def is_pinned(self) -> bool:
        """Whether the revision is a commit; a branch or tag may move."""
        return COMMIT_HASH.fullmatch(self.revision) is not None


def root_manifest(root: RootApplication, namespace: str) -> RawObject:
    """Manifest of the root Application: no automated sync, and no finalizer, so that its deletion never cascades."""
    values = {**root.parameters, "targetRevision": REVISION_VARIABLE}
    parameters = [{"name": name, "value": value} for name, value in sorted(values.items())]
    source = {
        "repoURL": root.repository,
        "path": root.path,
        "targetRevision": root.revision,
        "helm": {"parameters": parameters},
    }
    return {
        "apiVersion": APPLICATIONS.api_version,
        "kind": APPLICATIONS.kind,
        "metadata": {"name": NAME, "namespace": namespace, "labels": MANAGED_BY_LABELS},
        "spec": {
            "project": "default",
            "source": source,
            "destination": {"server": "https://kubernetes.default.svc", "namespace": namespace},
        },
    }


class RootLabelMissing(WindlassError):
    """The root follows our repository and path, but has lost the label of Windlass: it may not be written."""

    def __init__(self, namespace: str) -> None:
        label = ",".join(f"{name}={value}" for name, value in MANAGED_BY_LABELS.items())
        command = f"kubectl -n {namespace} label application {NAME} {label}"
        super().__init__(
            f"{namespace}/{NAME} follows the repository and path of this platform, but lacks the label {label}",
            hint=f"if windlass should manage it: {command}; nothing was changed",
        )


def is_managed_by_windlass(live: Application) -> bool:
    return all(live.metadata.labels.get(name) == value for name, value in MANAGED_BY_LABELS.items())


def root_identity(live: Application | None) -> ClusterIdentity | None:
    """The identity that a root of Windlass shows by its parameter `environment`; the platform is not known by it."""
    if live is None or not is_managed_by_windlass(live) or live.spec is None:
        return None
    environment = _values((live.spec.source or {}).get("helm")).get("environment", "")
    return ClusterIdentity(environment, "") if environment else None


def foreign_root_notice(root: RootApplication, live: Application | None) -> str:
    """Notice if another Application has the name of the root; empty otherwise.

    Raises `RootLabelMissing` if it is our root without its label.
    """
    if live is None or is_managed_by_windlass(live):
        return ""
    sources = (live.spec.sources or [live.spec.source or {}]) if live.spec else []
    if any((source.get("repoURL"), source.get("path")) == (root.repository, root.path) for source in sources):
        raise RootLabelMissing(live.metadata.namespace)
    return f"{live.metadata.namespace}/{NAME} is not managed by windlass: it is used as it is, as any other parent"


def root_change(
    root: RootApplication, namespace: str, live: Application | None, *, is_needed: bool
) -> tuple[RawObject, str]:
    """Desired manifest of the root, and a description of the change; the description is empty if none is needed.

    A root that Windlass manages is updated, any other is left alone, and a new one is created only if `is_needed`.
    """
    manifest = root_manifest(root, namespace)
    if (live is None and not is_needed) or (live is not None and not is_managed_by_windlass(live)):
        return manifest, ""
    if live is None:
        return manifest, f"{NAME}, the root Application, is created first"
    difference = "; ".join(_differences(live, manifest["spec"]))
    return manifest, f"{NAME}, the root Application, is changed first: {difference}" if difference else ""


def foreign_change(root: RootApplication, namespace: str, live: Application | None) -> str:
    """How another client changed a root that was as Windlass defines it; empty if it still is."""
    if live is None:
        return "it was deleted"
    if not is_managed_by_windlass(live):
        return "it lost the label of windlass"
    return "; ".join(_differences(live, root_manifest(root, namespace)["spec"]))


def surplus_fields(written: RawObject, manifest: RawObject) -> RawObject:
    """Merge patch that removes what other clients added to sources, destination and automation; empty if nothing."""
    live, desired = written.get("spec") or {}, manifest["spec"]
    policy = live.get("syncPolicy") or {}
    compared = {name: live[name] for name in ("source", "sources", "destination") if live.get(name)}
    if policy.get("automated") is not None:
        compared["syncPolicy"] = {"automated": policy["automated"]}
    surplus = _surplus(compared, {**desired, "syncPolicy": {}})
    return {"spec": surplus} if surplus else {}


def _surplus(live: RawObject, desired: RawObject) -> RawObject:
    found: RawObject = {}
    for name, value in live.items():
        if name not in desired:
            found[name] = None
        elif isinstance(value, dict) and isinstance(desired[name], dict) and (inner := _surplus(value, desired[name])):
            found[name] = inner
    return found


def _differences(live: Application, desired: RawObject) -> Iterator[str]:
    spec = msgspec.to_builtins(live.spec) if live.spec else {}
    old, new = spec.get("source") or {}, desired["source"]
    changed = [name for name in {**new, **old} if old.get(name) != new.get(name) and (name in new or old[name])]
    if spec.get("sources"):
        yield "it has several sources"
    else:
        for name in changed:
            before, after = _values(old.get(name)), _values(new.get(name))
            for field in sorted(key for key in {**before, **after} if before.get(key) != after.get(key)):
                yield f"{field or name} {before.get(field, 'nothing')} -> {after.get(field, 'nothing')}"
    if spec.get("project") != desired["project"]:
        yield f"project {spec.get('project')} -> {desired['project']}"
    if {name: value for name, value in (spec.get("destination") or {}).items() if value} != desired["destination"]:
        yield "its destination differs"
    if (spec.get("syncPolicy") or {}).get("automated") is not None:
        yield "automated sync was switched on"


def _values(value: object) -> dict[str, str]:
    """What of a field of the source is shown: Helm parameters by name, any other value under the empty name."""
    if isinstance(value, dict):
        parameters = value.get("parameters")
        rows = parameters if isinstance(parameters, list) else []
        named = {str(row.get("name")): str(row.get("value")) for row in rows if isinstance(row, dict)}
        others = {str(name): "other values" for name, each in value.items() if name != "parameters" and each}
        return named | others
    return {} if value in (None, "") else {"": str(value)}
