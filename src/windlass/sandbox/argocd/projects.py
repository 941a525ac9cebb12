"""AppProject restrictions on sources, destinations, source namespaces and kinds, with Argo CD's messages. Pure."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from windlass.sandbox.argocd import application_specs
from windlass.sandbox.argocd.repositories import ComparisonFailure

if TYPE_CHECKING:
    from collections.abc import Iterable

    from windlass.sandbox.apiserver.wire.api_status import Body
    from windlass.sandbox.argocd.comparison import ComparedResource

PROJECTS = "appprojects.argoproj.io"
LOAD_ERROR = "Failed to load application project"
IN_CLUSTER_SERVER, IN_CLUSTER_NAME = "https://kubernetes.default.svc", "in-cluster"


def project_name(spec: Body) -> str:
    return str(spec.get("project") or "default")


def require_project(app: Body, project: Body | None) -> Body:
    """The spec of an Application's project. Raises ComparisonFailure if it does not exist or may not be used."""
    name, meta = project_name(app["spec"]), app["metadata"]
    if project is None:
        reason = f"Application referencing project {name} which does not exist"
        raise ComparisonFailure(
            reason, condition="InvalidSpecError", message=f'{LOAD_ERROR}: appproject.argoproj.io "{name}" not found'
        )
    rules: Body = project.get("spec") or {}
    if meta["namespace"] != application_specs.NAMESPACE and not _matches_any(
        meta["namespace"], rules.get("sourceNamespaces") or ()
    ):
        reason = (
            f"application '{meta['name']}' in namespace '{meta['namespace']}' is not permitted to use project '{name}'"
        )
        raise ComparisonFailure(reason, condition="UnknownError", message=f"{LOAD_ERROR}: {reason}")
    return rules


def require_permitted(app: Body, project: Body | None) -> None:
    """Raise ComparisonFailure if the project does not permit a source or the destination."""
    rules, spec = require_project(app, project), app["spec"]
    destination, name = spec["destination"], project_name(spec)
    if not application_specs.get_sources(spec):
        raise ComparisonFailure(
            "spec.source.repoURL and either spec.source.path or spec.source.chart are required",
            condition="InvalidSpecError",
        )
    for source in application_specs.get_sources(spec):
        if not _matches_any(source["repoURL"], rules.get("sourceRepos") or ()):
            reason = f"application repo {source['repoURL']} is not permitted in project '{name}'"
            raise ComparisonFailure(reason, condition="InvalidSpecError")
    if not _is_destination_permitted(rules, destination, destination.get("namespace", "")):
        server = destination.get("name") or destination.get("server", IN_CLUSTER_SERVER)
        head = f"application destination server '{server}' and namespace '{destination.get('namespace', '')}'"
        reason = f"{head} do not match any of the allowed destinations in project '{name}'"
        raise ComparisonFailure(reason, condition="InvalidSpecError")


def refusal(item: ComparedResource, app: Body, project: Body | None) -> str:
    """Why the project does not permit a resource; empty if it does."""
    rules, name = (project or {}).get("spec") or {}, project_name(app["spec"])
    if not permits_kind(item, project):
        return f"resource {item.group}:{item.kind} is not permitted in project {name}"
    if item.namespace and not _is_destination_permitted(rules, app["spec"]["destination"], item.namespace):
        return f"namespace {item.namespace} is not permitted in project '{name}'"
    return ""


def permits_kind(item: ComparedResource, project: Body | None) -> bool:
    """Namespaced kinds are permitted unless a list excludes them; cluster-scoped kinds only if a list permits them."""
    rules, scope = (project or {}).get("spec") or {}, "namespace" if item.namespace else "cluster"
    permitted = rules.get(f"{scope}ResourceWhitelist", [{"group": "*", "kind": "*"}] if item.namespace else ())
    return _is_listed(item, permitted or ()) and not _is_listed(item, rules.get(f"{scope}ResourceBlacklist") or ())


def _is_listed(item: ComparedResource, rows: Iterable[Body]) -> bool:
    return any(fnmatchcase(item.group, row["group"]) and fnmatchcase(item.kind, row["kind"]) for row in rows)


def _is_destination_permitted(rules: Body, destination: Body, namespace: str) -> bool:
    """Whether an entry permits the destination and none that begins with `!` denies it."""
    permitted = False
    server = IN_CLUSTER_SERVER if destination.get("name") == IN_CLUSTER_NAME else destination.get("server", "")
    for row in rules.get("destinations") or ():
        to_server = _matches(server, row.get("server", "")) or (
            server == IN_CLUSTER_SERVER and _matches(IN_CLUSTER_NAME, row.get("name", ""))
        )
        to_namespace = _matches(namespace, row.get("namespace", ""))
        permitted = permitted or (to_server and to_namespace)
        if to_server != to_namespace and row.get("namespace" if to_server else "server", "").startswith("!"):
            return False
    return permitted


def _matches(text: str, pattern: str) -> bool:
    return fnmatchcase(text, pattern) if not pattern.startswith("!") else not fnmatchcase(text, pattern[1:])


def _matches_any(text: str, patterns: Iterable[str]) -> bool:
    matches = [(_matches(text, pattern), pattern.startswith("!")) for pattern in patterns]
    return any(fits for fits, denies in matches if not denies) and all(fits for fits, denies in matches if denies)
