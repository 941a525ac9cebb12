"""The rights that each action needs in a cluster: the one table, and the RBAC objects that grant them as YAML.

Discovery and access reviews are not listed: Kubernetes grants both to every authenticated user.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from windlass.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ARGO = "argoproj.io"
RBAC_GROUP = "rbac.authorization.k8s.io"
SERVICE_ACCOUNT_PREFIX = "system:serviceaccount:"
READ_VERBS = frozenset({"get", "list", "watch"})


class RightsFor(StrEnum):
    """An action that needs rights; dry runs need those of their action."""

    DEPLOY = "deploy"
    VALIDATE = "validate"
    PLAN = "plan"
    TEARDOWN = "teardown"
    WAIT = "wait"
    IMPORT = "import"
    STATUS = "status"


class Place(StrEnum):
    """Where a right is needed."""

    CLUSTER = "the whole cluster"
    ARGOCD = "Argo CD's namespace"
    APPLICATIONS = "the namespaces of Applications"
    """To read Applications of more than one namespace, the whole cluster: they are listed with one request."""


@dataclass(frozen=True, slots=True)
class Right:
    actions: tuple[RightsFor, ...]
    place: Place
    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    why: str
    names: tuple[str, ...] = ()
    """Only objects with these names; `{argocd}` is Argo CD's namespace."""


@dataclass(frozen=True, slots=True)
class PermissionRequest:
    """The user for whose account rights are printed, and what they depend on."""

    subject: str
    """A user name; that of a service account is `system:serviceaccount:NAMESPACE:NAME`."""
    argocd_namespace: str
    application_namespaces: frozenset[str] = frozenset()
    """Other namespaces with Applications of the platform."""
    checked_resources: frozenset[tuple[str, str]] = frozenset()
    """API group and plural of objects whose health is read; a plural of `*` stands for all."""


_A = RightsFor
_READ = (_A.DEPLOY, _A.VALIDATE, _A.PLAN, _A.WAIT)
_OBJECTS = (*_READ, _A.STATUS)
_RUNS = (_A.DEPLOY, _A.TEARDOWN)
_EXPLAINED = (_A.DEPLOY, _A.VALIDATE, _A.STATUS)
_CHECKS = (_A.DEPLOY, _A.VALIDATE, _A.PLAN)
_CLUSTER, _ARGOCD, _APPLICATIONS = Place.CLUSTER, Place.ARGOCD, Place.APPLICATIONS

RIGHTS: tuple[Right, ...] = (
    Right((*_READ, _A.TEARDOWN), _APPLICATIONS, ARGO, ("applications",), ("list",), "the state of the platform"),
    Right(_CHECKS, _APPLICATIONS, ARGO, ("applications",), ("get",), "Applications that parents define"),
    Right((*_RUNS, _A.WAIT), _APPLICATIONS, ARGO, ("applications",), ("watch",), "to wait for Argo CD"),
    Right((_A.IMPORT,), _CLUSTER, ARGO, ("applications",), ("list",), "everything that Argo CD deploys"),
    Right((_A.STATUS,), _CLUSTER, ARGO, ("applications",), ("list", "watch"), "everything that Argo CD deploys"),
    Right((*_CHECKS, _A.IMPORT), _CLUSTER, ARGO, ("applicationsets",), ("list",), "what defines Applications"),
    Right(_OBJECTS, _ARGOCD, "", ("configmaps",), ("get",), "Argo CD's health checks and intervals", ("argocd-cm",)),
    Right((_A.IMPORT,), _ARGOCD, "", ("configmaps",), ("get",), "the health check for Applications", ("argocd-cm",)),
    Right(_READ, _ARGOCD, ARGO, ("appprojects",), ("get",), "whether this is Argo CD's namespace", ("default",)),
    Right((_A.VALIDATE, _A.WAIT), _CLUSTER, "", ("namespaces",), ("get",), "whether it exists", ("{argocd}",)),
    Right((_A.DEPLOY, _A.PLAN), _CLUSTER, "", ("namespaces",), ("get",), "whether it exists, and to which cluster a "
          "plan belongs", ("{argocd}", "kube-system")),
    Right(_CHECKS, _ARGOCD, "coordination.k8s.io", ("leases",), ("get",), "the recorded environment and platform",
          ("windlass",)),
    Right((_A.STATUS,), _ARGOCD, "coordination.k8s.io", ("leases",), ("get", "list", "watch"), "the recorded "
          "environment and platform, and the holder of the lock", ("windlass",)),
    Right(_RUNS, _ARGOCD, "coordination.k8s.io", ("leases",), ("create",), "to create the lock"),
    Right((_A.DEPLOY,), _ARGOCD, "coordination.k8s.io", ("leases",), ("update",), "to renew and release the lock",
          ("windlass",)),
    Right((_A.PLAN,), _ARGOCD, "", ("services/proxy",), ("get",), "with an Argo CD token: which objects change",
          ("https:argocd-server:443", "http:argocd-server:80")),
    Right(_OBJECTS, _CLUSTER, "apps", ("deployments", "statefulsets", "daemonsets", "replicasets"), ("get", "list"),
          "the health of objects"),
    Right(_OBJECTS, _CLUSTER, "batch", ("jobs",), ("get", "list"), "the health of objects, and hooks"),
    Right(_OBJECTS, _CLUSTER, "", ("pods", "persistentvolumeclaims"), ("get", "list"), "the health of objects, and why "
          "one is not healthy"),
    Right(_EXPLAINED, _CLUSTER, "", ("events",), ("list",), "why a pod is not healthy"),
    Right(_EXPLAINED, _CLUSTER, "", ("pods/log",), ("get",), "why a container ended"),
    Right((_A.VALIDATE,), _CLUSTER, "wgpolicyk8s.io", ("policyreports", "clusterpolicyreports"), ("list",),
          "findings of policy engines"),
    Right(_RUNS, _APPLICATIONS, ARGO, ("applications",), ("patch",), "to sync, to refresh, to change finalizers"),
    Right((_A.DEPLOY,), _ARGOCD, ARGO, ("applications",), ("create",), "the root Application"),
    Right((_A.TEARDOWN,), _APPLICATIONS, ARGO, ("applications", "applicationsets"), ("delete",), "to delete them"),
    Right((_A.TEARDOWN,), _APPLICATIONS, ARGO, ("applicationsets",), ("patch",), "to keep their Applications"),
    Right((_A.TEARDOWN,), _ARGOCD, "coordination.k8s.io", ("leases",), ("update", "delete"), "to renew the lock, and "
          "to delete it at the end", ("windlass",)),
    Right((_A.TEARDOWN,), _CLUSTER, "*", ("*",), ("get", "list"), "the remaining objects of "
          "applications, and foreign objects"),
    Right((_A.TEARDOWN,), _CLUSTER, "", ("persistentvolumes",), ("patch",), "to retain volumes"),
    Right((_A.TEARDOWN,), _CLUSTER, "", ("persistentvolumeclaims", "namespaces"), ("delete",), "what a cascade keeps"),
    Right((_A.TEARDOWN,), _CLUSTER, "apiextensions.k8s.io", ("customresourcedefinitions",), ("delete",),
          "what a cascade keeps"),
    Right((_A.TEARDOWN,), _CLUSTER, "snapshot.storage.k8s.io", ("volumesnapshots",), ("create",),
          "the volume policy `snapshot`"),
)  # fmt: skip


def readable_resource(group: str, kind: str) -> tuple[str, str]:
    """Group and plural of a kind whose health is read.

    The plural of a kind is known only to the server: of a custom group all kinds are read, of the core group never all,
    because Secrets are among them.
    """
    if group:
        return group, "*"
    plural = kind.lower()
    return "", plural if plural.endswith("s") else f"{plural}s"


def permissions_yaml(actions: Iterable[RightsFor], request: PermissionRequest) -> str:
    """Roles and bindings, for `kubectl apply`."""
    return "".join(
        f"---\n{document}"
        for action in actions
        for namespace, rights in sorted(_rights_by_namespace(action, request).items())
        for document in _role_and_binding(f"windlass-{action}", namespace, rights, request)
    )


def _rights_by_namespace(action: RightsFor, request: PermissionRequest) -> dict[str, list[Right]]:
    """The rights by namespace; the key of those in the whole cluster is empty."""
    found: dict[str, list[Right]] = {}
    for right in (*RIGHTS, *_checked_rights(request)):
        if action in right.actions:
            for namespace in _namespaces(right, request):
                found.setdefault(namespace, []).append(right)
    return found


def _checked_rights(request: PermissionRequest) -> Iterator[Right]:
    for group, plural in sorted(request.checked_resources):
        yield Right(
            _OBJECTS, _CLUSTER, group, (plural,), ("get", "list"), "objects with a health check, or with a gate"
        )


def _namespaces(right: Right, request: PermissionRequest) -> frozenset[str]:
    namespaces = request.application_namespaces | {request.argocd_namespace}
    if right.place is Place.ARGOCD:
        return frozenset({request.argocd_namespace})
    is_read_at_once = len(namespaces) > 1 and READ_VERBS.issuperset(right.verbs)
    return frozenset({""}) if right.place is Place.CLUSTER or is_read_at_once else namespaces


def _role_and_binding(name: str, namespace: str, rights: list[Right], request: PermissionRequest) -> Iterator[str]:
    kind = "Role" if namespace else "ClusterRole"
    metadata = json.dumps({"name": name, "namespace": namespace} if namespace else {"name": name})
    rules = "".join(f"  # {right.why}\n  - {json.dumps(_rule(right, request))}\n" for right in rights)
    yield f"{_head(kind, metadata)}rules:\n{rules}"
    role = json.dumps({"apiGroup": RBAC_GROUP, "kind": kind, "name": name})
    subjects = json.dumps([_subject(request.subject)])
    yield f"{_head(f'{kind}Binding', metadata)}roleRef: {role}\nsubjects: {subjects}\n"


def _head(kind: str, metadata: str) -> str:
    return f"apiVersion: {RBAC_GROUP}/v1\nkind: {kind}\nmetadata: {metadata}\n"


def _rule(right: Right, request: PermissionRequest) -> dict[str, list[str]]:
    rule = {"apiGroups": [right.group], "resources": [*right.resources], "verbs": [*right.verbs]}
    names = [name.format(argocd=request.argocd_namespace) for name in right.names]
    return {**rule, "resourceNames": names} if names else rule


def _subject(name: str) -> dict[str, str]:
    if not name.startswith(SERVICE_ACCOUNT_PREFIX):
        return {"apiGroup": RBAC_GROUP, "kind": "User", "name": name}
    namespace, _, account = name.removeprefix(SERVICE_ACCOUNT_PREFIX).partition(":")
    if not namespace or not account or ":" in account:
        raise InvalidInput(f"{name!r} names no service account", hint=f"{SERVICE_ACCOUNT_PREFIX}NAMESPACE:NAME")
    return {"kind": "ServiceAccount", "name": account, "namespace": namespace}
