"""AppProject restrictions on sources, destinations, source namespaces and kinds, with Argo CD's messages. Pure."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from windlass.sandbox.argocd import application_specs
from windlass.sandbox.argocd.repositories import Broken

if TYPE_CHECKING:
    from collections.abc import Iterable

    from windlass.sandbox.apiserver.wire.api_status import Body
    from windlass.sandbox.argocd.comparison import Item

PROJECTS = "appprojects.argoproj.io"
UNLOADED = "Failed to load application project"
SERVER, CLUSTER = "https://kubernetes.default.svc", "in-cluster"


def name_in(spec: Body) -> str:
    return str(spec.get("project") or "default")


def require_project(app: Body, project: Body | None) -> Body:
    """The spec of an Application's project. Raises ComparisonFailure if it does not exist or may not be used."""
    name, meta = name_in(app["spec"]), app["metadata"]
    if project is None:
        why = f"Application referencing project {name} which does not exist"
        raise Broken(why, condition="InvalidSpecError", told=f'{UNLOADED}: appproject.argoproj.io "{name}" not found')
    rules: Body = project.get("spec") or {}
    if meta["namespace"] != application_specs.NAMESPACE and not _is_any(
        meta["namespace"], rules.get("sourceNamespaces") or ()
    ):
        why = (
            f"application '{meta['name']}' in namespace '{meta['namespace']}' is not permitted to use project '{name}'"
        )
        raise Broken(why, condition="UnknownError", told=f"{UNLOADED}: {why}")
    return rules


def require(app: Body, project: Body | None) -> None:
    """Raise ComparisonFailure if the project does not permit a source or the destination."""
    rules, spec = require_project(app, project), app["spec"]
    where, name = spec["destination"], name_in(spec)
    if not application_specs.sources_of(spec):
        raise Broken(
            "spec.source.repoURL and either spec.source.path or spec.source.chart are required",
            condition="InvalidSpecError",
        )
    for source in application_specs.sources_of(spec):
        if not _is_any(source["repoURL"], rules.get("sourceRepos") or ()):
            why = f"application repo {source['repoURL']} is not permitted in project '{name}'"
            raise Broken(why, condition="InvalidSpecError")
    if not _is_reached(rules, where, where.get("namespace", "")):
        server = where.get("name") or where.get("server", SERVER)
        head = f"application destination server '{server}' and namespace '{where.get('namespace', '')}'"
        why = f"{head} do not match any of the allowed destinations in project '{name}'"
        raise Broken(why, condition="InvalidSpecError")


def refusal_of(item: Item, app: Body, project: Body | None) -> str:
    """Why the project does not permit a resource; empty if it does."""
    rules, name = (project or {}).get("spec") or {}, name_in(app["spec"])
    if not permits_kind(item, project):
        return f"resource {item.group}:{item.kind} is not permitted in project {name}"
    if item.namespace and not _is_reached(rules, app["spec"]["destination"], item.namespace):
        return f"namespace {item.namespace} is not permitted in project '{name}'"
    return ""


def permits_kind(item: Item, project: Body | None) -> bool:
    """Namespaced kinds are permitted unless a list excludes them; cluster-scoped kinds only if a list permits them."""
    rules, scope = (project or {}).get("spec") or {}, "namespace" if item.namespace else "cluster"
    permitted = rules.get(f"{scope}ResourceWhitelist", [{"group": "*", "kind": "*"}] if item.namespace else ())
    return _is_listed(item, permitted or ()) and not _is_listed(item, rules.get(f"{scope}ResourceBlacklist") or ())


def _is_listed(item: Item, rows: Iterable[Body]) -> bool:
    return any(fnmatchcase(item.group, row["group"]) and fnmatchcase(item.kind, row["kind"]) for row in rows)


def _is_reached(rules: Body, where: Body, namespace: str) -> bool:
    """Whether an entry permits the destination and none that begins with `!` denies it."""
    permitted = False
    server = SERVER if where.get("name") == CLUSTER else where.get("server", "")
    for row in rules.get("destinations") or ():
        to_server = _fits(server, row.get("server", "")) or (server == SERVER and _fits(CLUSTER, row.get("name", "")))
        to_namespace = _fits(namespace, row.get("namespace", ""))
        permitted = permitted or (to_server and to_namespace)
        if to_server != to_namespace and row.get("namespace" if to_server else "server", "").startswith("!"):
            return False
    return permitted


def _fits(text: str, pattern: str) -> bool:
    return fnmatchcase(text, pattern) if not pattern.startswith("!") else not fnmatchcase(text, pattern[1:])


def _is_any(text: str, patterns: Iterable[str]) -> bool:
    found = [(_fits(text, pattern), pattern.startswith("!")) for pattern in patterns]
    return any(fits for fits, denies in found if not denies) and all(fits for fits, denies in found if denies)
