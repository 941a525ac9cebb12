"""Discovery (plain and aggregated), version, health and OpenAPI documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windlass.sandbox.apiserver.wire import api_status

if TYPE_CHECKING:
    from windlass.sandbox.apiserver.objects.kinds import Catalogue, ServedKind
    from windlass.sandbox.apiserver.wire.api_status import Body

AGGREGATED_MEDIA_TYPE = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
VERSION = {
    "major": "1", "minor": "34", "gitVersion": "v1.34.2", "gitCommit": "windlass-sandbox", "gitTreeState": "clean",
    "buildDate": "2025-01-01T00:00:00Z", "goVersion": "none", "compiler": "none", "platform": "linux/amd64",
}  # fmt: skip
HEALTH_PATHS = frozenset({"/healthz", "/livez", "/readyz"})
# Subresources whose objects have another kind: kind, group, version, verbs.
SUBRESOURCE_KINDS = {
    "scale": ("Scale", "autoscaling", "v1", ["get", "patch", "update"]),
    "eviction": ("Eviction", "policy", "v1", ["create"]),
    "token": ("TokenRequest", "authentication.k8s.io", "v1", ["create"]),
    "log": ("Pod", "", "v1", ["get"]),
    "proxy": ("ServiceProxyOptions", "", "v1", ["create", "delete", "get", "patch", "update"]),
    "finalize": ("Namespace", "", "v1", ["update"]),
}


def find_document(catalogue: Catalogue, path: str, accept: str) -> tuple[Body | str, str]:
    """The document at a path that names no objects, and its media type."""
    if path in HEALTH_PATHS:
        return "ok", "text/plain; charset=utf-8"
    if path == "/version":
        return VERSION, "application/json"
    parts = path.strip("/").split("/")
    if path in {"/api", "/apis"} and "v=v2;as=APIGroupDiscoveryList" in accept:
        return _aggregated_document(catalogue, core=path == "/api"), AGGREGATED_MEDIA_TYPE
    if path in {"/api", "/apis"} and "as=" in accept and "application/json" not in accept.split(","):
        raise api_status.StatusError(
            406, "NotAcceptable", "only the following media types are accepted: application/json", {}
        )
    if parts[0] == "openapi":
        return _openapi_document(catalogue, parts[1:]), "application/json"
    document = _plain_document(catalogue, parts)
    if document is None:
        raise api_status.page_not_found()
    return document, "application/json"


def _plain_document(catalogue: Catalogue, parts: list[str]) -> Body | None:
    versions = catalogue.versions_by_group()
    match parts:
        case ["api"]:
            return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
        case ["apis"]:
            groups = [_group(name, group_versions) for name, group_versions in versions.items() if name]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
        case ["apis", group] if group in versions:
            return {"kind": "APIGroup", "apiVersion": "v1", **_group(group, versions[group])}
        case ["api", "v1"]:
            return _resource_list(catalogue, "", "v1")
        case ["apis", group, version] if version in versions.get(group, ()):
            return _resource_list(catalogue, group, version)
    return None


def _group(name: str, versions: list[str]) -> Body:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _resource_list(catalogue: Catalogue, group: str, version: str) -> Body:
    resources: list[Body] = []
    for kind in catalogue.in_group_version(group, version):
        row = {"name": kind.plural, "singularName": kind.singular, "namespaced": kind.namespaced, "kind": kind.kind}
        resources.append({**row, "verbs": list(kind.verbs), **_short_names_and_categories(kind)})
        for sub, (kind_name, sub_group, sub_version, verbs) in _subresources(kind).items():
            row = {"name": f"{kind.plural}/{sub}", "singularName": "", "namespaced": kind.namespaced, "kind": kind_name}
            other = {"group": sub_group, "version": sub_version} if sub_group != group else {}
            resources.append({**row, **other, "verbs": verbs})
    name = f"{group}/{version}" if group else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": name, "resources": resources}


def _short_names_and_categories(kind: ServedKind) -> Body:
    return api_status.without_empty({"shortNames": list(kind.short_names), "categories": list(kind.categories)})


def _subresources(kind: ServedKind) -> dict[str, tuple[str, str, str, list[str]]]:
    own = (kind.kind, kind.group, kind.version, ["get", "patch", "update"])
    return {sub: SUBRESOURCE_KINDS.get(sub, own) for sub in sorted(kind.subresources)}


def _aggregated_document(catalogue: Catalogue, *, core: bool) -> Body:
    groups = []
    for group, versions in catalogue.versions_by_group().items():
        if (group == "") != core:
            continue
        listed = [
            {
                "version": version,
                "freshness": "Current",
                "resources": [_aggregated_resource(k) for k in catalogue.in_group_version(group, version)],
            }
            for version in versions
        ]
        groups.append({"metadata": {"name": group, "creationTimestamp": None} if group else {}, "versions": listed})
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": groups}


def _aggregated_resource(kind: ServedKind) -> Body:
    response_kind = _gvk(kind) if kind.is_custom else {"group": "", "version": "", "kind": kind.kind}
    entry: Body = {
        "resource": kind.plural,
        "responseKind": response_kind,
        "scope": "Namespaced" if kind.namespaced else "Cluster",
    }
    entry |= {"singularResource": kind.singular, "verbs": list(kind.verbs), **_short_names_and_categories(kind)}
    subs = [
        {"subresource": sub, "responseKind": {"group": group, "version": version, "kind": shown}, "verbs": verbs}
        for sub, (shown, group, version, verbs) in _subresources(kind).items()
    ]
    return {**entry, **({"subresources": subs} if subs else {})}


def _gvk(kind: ServedKind) -> Body:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def _openapi_document(catalogue: Catalogue, parts: list[str]) -> Body:
    match parts:
        case ["v3"]:
            paths = {}
            for group, versions in catalogue.versions_by_group().items():
                for version in versions:
                    name = f"apis/{group}/{version}" if group else f"api/{version}"
                    paths[name] = {"serverRelativeURL": f"/openapi/v3/{name}"}
            return {"paths": paths}
        case ["v3", "api", *group, version] | ["v3", "apis", *group, version]:
            return _openapi_group_document(
                [k for k in catalogue.in_group_version("".join(group), version) if not k.is_virtual]
            )
    raise api_status.unknown_path()


def _openapi_group_document(kinds: list[ServedKind]) -> Body:
    """As much OpenAPI as kubectl needs: for server-side field validation, and custom kinds for `kubectl explain`."""
    paths: Body = {}
    schemas: Body = {}
    parameters = [{"name": name, "in": "query", "schema": {"type": "string"}} for name in ("dryRun", "fieldValidation")]
    for kind in kinds:
        root = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.version}"
        collection_path = (
            f"{root}/namespaces/{{namespace}}/{kind.plural}" if kind.namespaced else f"{root}/{kind.plural}"
        )
        name = f"{'.'.join(reversed(kind.group.split('.')))}.{kind.version}.{kind.kind}".lstrip(".")
        ref = {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}}
        operation: Body = {"parameters": parameters, "x-kubernetes-group-version-kind": _gvk(kind)}
        operation["responses"] = {"200": {"description": "OK", "content": ref}}
        paths[collection_path] = {"post": operation | {"x-kubernetes-action": "post"}}
        paths[f"{collection_path}/{{name}}"] = {
            "get": operation | {"x-kubernetes-action": "get"},
            "patch": operation | {"x-kubernetes-action": "patch"},
        }
        schemas[name] = {**_openapi_schema(kind), "x-kubernetes-group-version-kind": [_gvk(kind)]}
    info = {"title": "Windlass sandbox", "version": "v1.34.2"}
    return {"openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": schemas}}


def _openapi_schema(kind: ServedKind) -> Body:
    meta: Body = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}
    schema: dict[str, Any] = kind.openapi_schema or {
        "type": "object",
        "description": f"{kind.kind} of {kind.api_version}",
    }
    return {**schema, "properties": {**meta, **schema.get("properties", {})}}
