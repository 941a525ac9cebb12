"""Subresources other than `status`: scale, log, eviction, token and proxy."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from msgspec import structs

from windlass.sandbox.apiserver import reads
from windlass.sandbox.apiserver.access.authentication import API_AUDIENCE
from windlass.sandbox.apiserver.objects import selectors
from windlass.sandbox.apiserver.objects.selectors import value_at_path
from windlass.sandbox.apiserver.requests import ApiResult
from windlass.sandbox.apiserver.wire import api_status

if TYPE_CHECKING:
    from collections.abc import Callable

    from windlass.sandbox.apiserver.access.authentication import Authenticator
    from windlass.sandbox.apiserver.deletes import DeleteHandler
    from windlass.sandbox.apiserver.objects.kinds import ServedKind
    from windlass.sandbox.apiserver.requests import ApiRequest
    from windlass.sandbox.apiserver.store import Store
    from windlass.sandbox.apiserver.wire.api_status import Body

MIN_TOKEN_SECONDS = 600  # minimum lifetime of a token
DISRUPTION_BUDGETS = "poddisruptionbudgets.policy"


def build_scale(kind: ServedKind, body: Body) -> Body:
    """The Scale of an object."""
    assert kind.scale is not None
    meta = {
        n: body["metadata"][n]
        for n in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
        if n in body["metadata"]
    }
    status: Body = {"replicas": value_at_path(body, kind.scale.status_replicas) or 0}
    selector = value_at_path(body, kind.scale.selector) if kind.scale.selector else None
    if selector:
        status["selector"] = selector if isinstance(selector, str) else _format_selector(selector)
    replicas = value_at_path(body, kind.scale.replicas)
    spec = {"replicas": replicas} if replicas else {}
    return {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": meta, "spec": spec, "status": status}


def with_scale(kind: ServedKind, body: Body, scale: Body) -> Body:
    """The object with the replicas of a Scale, and with its uid and resourceVersion, which are preconditions."""
    assert kind.scale is not None
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    if not isinstance(replicas, int) or replicas < 0:
        error = api_status.invalid_value("spec.replicas", replicas, "must be greater than or equal to 0")
        scale_kind = replace(kind, kind="Scale", group="autoscaling")
        raise api_status.invalid(scale_kind, body["metadata"]["name"], [error])
    preconditions = {
        name: value for name, value in (scale.get("metadata") or {}).items() if name in {"uid", "resourceVersion"}
    }
    target: Body = {**body, "metadata": {**body["metadata"], **preconditions}}
    return _with_value(target, kind.scale.replicas.strip(".").split("."), replicas)


def _with_value(body: Body, path: list[str], value: Any) -> Body:
    first, *rest = path
    return {**body, first: _with_value(body.get(first) or {}, rest, value) if rest else value}


def _format_selector(selector: Body) -> str:
    parts = []
    for r in selectors.label_selector_requirements(selector):
        values = f"{r.key} {r.operator} ({','.join(sorted(r.values))})"
        single = f"{r.key}={r.values[0]}" if len(r.values) == 1 else values
        parts.append({"in": single, "notin": values, "exists": r.key}.get(r.operator, f"!{r.key}"))
    return ",".join(parts)


class Subresources:
    def __init__(self, store: Store, delete_handler: DeleteHandler, authenticator: Authenticator) -> None:
        self._store = store
        self._delete_handler = delete_handler
        self._authenticator = authenticator
        self.logs: dict[tuple[str, str, str], str] = {}
        """Container logs by namespace, pod and container; controllers write them."""
        self.services: dict[tuple[str, str], Callable[[dict[str, str]], ApiResult]] = {}
        """What answers GET requests to a service, by namespace and `scheme:name:port`: to path, query and cookie."""

    def read_log(self, request: ApiRequest) -> ApiResult:
        pod = reads.require_object(self._store, request).body
        names = [container["name"] for container in pod.get("spec", {}).get("containers", ())]
        container = request.extra.get("container") or names[0]
        if len(names) > 1 and "container" not in request.extra:
            listed = ", ".join(names)
            what = f"a container name must be specified for pod {request.name}, choose one of: [{listed}]"
            raise api_status.bad_request(what)
        if container not in names:
            raise api_status.bad_request(f"container {container} is not valid for pod {request.name}")
        text = self.logs.get((request.namespace, request.name, container), "")
        tail = request.extra.get("tailLines", "")
        if tail.isdecimal():
            lines = text.splitlines(keepends=True)
            text = "".join(lines[len(lines) - int(tail) :] if int(tail) < len(lines) else lines)
        return ApiResult(200, text)

    def forward(self, request: ApiRequest) -> ApiResult:
        service = self.services.get((request.namespace, request.name))
        if service is None:
            raise api_status.not_found(request.kind, request.name)
        if request.verb != "get":
            raise api_status.method_not_allowed()
        return service(request.extra)

    def evict(self, request: ApiRequest) -> ApiResult:
        """Delete a pod unless that violates a PodDisruptionBudget."""
        if (request.body or {}).get("metadata", {}).get("name", request.name) != request.name:
            raise api_status.bad_request("name in URL does not match name in Eviction object")
        pod = reads.require_object(self._store, request).body
        options = (request.body or {}).get("deleteOptions") or {}
        is_dry_run = request.options.dry_run or bool(options.get("dryRun"))
        for stored in self._store.list(DISRUPTION_BUDGETS, request.namespace):
            budget = stored.body
            requirements = selectors.label_selector_requirements(budget.get("spec", {}).get("selector") or {})
            if not selectors.matches_all(requirements, pod["metadata"].get("labels", {}).get):
                continue
            if pod.get("status", {}).get("phase") != "Pending" and not budget.get("status", {}).get(
                "disruptionsAllowed"
            ):
                raise _disruption_budget_error(stored.name, budget)
            if not is_dry_run and budget.get("status", {}).get("disruptionsAllowed"):
                self._count_disruption(budget)
        conditions = options.get("preconditions") or {}
        delete_options = structs.replace(
            request.options,
            dry_run=is_dry_run,
            uid=conditions.get("uid", ""),
            resource_version=conditions.get("resourceVersion", ""),
            grace=options.get("gracePeriodSeconds", request.options.grace),
        )
        self._delete_handler.delete(structs.replace(request, options=delete_options))
        return ApiResult(201, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})

    def _count_disruption(self, budget: Body) -> None:
        """Allow one disruption less, until the disruption controller updates the status of the budget."""
        status = budget["status"]
        self._store.put(
            DISRUPTION_BUDGETS, {**budget, "status": {**status, "disruptionsAllowed": status["disruptionsAllowed"] - 1}}
        )

    def create_token(self, request: ApiRequest) -> ApiResult:
        account = reads.require_object(self._store, request)
        spec = {"expirationSeconds": 3600, "audiences": [API_AUDIENCE], **((request.body or {}).get("spec") or {})}
        if spec["expirationSeconds"] < MIN_TOKEN_SECONDS:
            why = "may not specify a duration less than 10 minutes"
            error = api_status.invalid_value("spec.expirationSeconds", spec["expirationSeconds"], why)
            raise api_status.invalid(
                replace(request.kind, kind="TokenRequest", group="authentication.k8s.io"), "", [error]
            )
        meta = {"name": request.name, "namespace": request.namespace}
        status = self._authenticator.issue_service_account_token(account, spec)
        head = {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1"}
        return ApiResult(201, {**head, "metadata": meta, "spec": spec, "status": status})


def _disruption_budget_error(name: str, budget: Body) -> api_status.StatusError:
    status = budget.get("status", {})
    needs, has = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
    error = api_status.too_many_requests("Cannot evict pod as it would violate the pod's disruption budget.", 0)
    message = f"The disruption budget {name} needs {needs} healthy pods and has {has} currently"
    error.details = {"causes": [{"reason": "DisruptionBudget", "message": message}]}
    return error
