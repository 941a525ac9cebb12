"""The root Application, which defines all others and is only ever changed by `deploy`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from windlass.argo.cd.applications import APPLICATIONS
from windlass.core.platform.model.snapshots import COMMIT_HASH

if TYPE_CHECKING:
    from collections.abc import Mapping

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


def is_managed_by_windlass(live: Application) -> bool:
    return all(live.metadata.labels.get(name) == value for name, value in MANAGED_BY_LABELS.items())


def root_change(
    root: RootApplication, namespace: str, live: Application | None, *, is_needed: bool
) -> tuple[RawObject, str]:
    """Desired manifest of the root, and a description of the change; the description is empty if none is needed.

    A root that Windlass manages is updated, any other is left alone, and a new one is created only if `is_needed`.
    """
    manifest = root_manifest(root, namespace)
    if (live is None and not is_needed) or (live is not None and not is_managed_by_windlass(live)):
        return manifest, ""
    difference = _difference(live, manifest)
    return manifest, f"{NAME}, which defines the Applications, is written first: {difference}" if difference else ""


def _difference(live: Application | None, manifest: RawObject) -> str:
    """Empty if the live root matches the manifest."""
    if live is None:
        return "it does not exist"
    old, new = (live.spec.source if live.spec else None) or {}, manifest["spec"]["source"]
    changed = [name for name in new if old.get(name) != new[name]]
    if "targetRevision" in changed:
        return f"it follows {old.get('targetRevision')}, wanted is {new['targetRevision']}"
    return f"its {', '.join(changed)} differs" if changed else ""
