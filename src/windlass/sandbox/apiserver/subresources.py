"""Subresources other than `status`: scale, log, eviction and token."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from msgspec import structs

from windlass.sandbox.apiserver import reads
from windlass.sandbox.apiserver.access.authentication import AUDIENCE
from windlass.sandbox.apiserver.objects import selectors
from windlass.sandbox.apiserver.objects.selectors import at_path
from windlass.sandbox.apiserver.requests import Outcome
from windlass.sandbox.apiserver.wire import api_status

if TYPE_CHECKING:
    from windlass.sandbox.apiserver.access.authentication import Identities
    from windlass.sandbox.apiserver.deletes import Deleting
    from windlass.sandbox.apiserver.objects.kinds import Kind
    from windlass.sandbox.apiserver.requests import Ask
    from windlass.sandbox.apiserver.store import Store
    from windlass.sandbox.apiserver.wire.api_status import Body

SHORTEST = 600  # minimum lifetime of a token
BUDGETS = "poddisruptionbudgets.policy"


def scale_of(kind: Kind, body: Body) -> Body:
    """The Scale of an object."""
    assert kind.scale is not None
    meta = {
        n: body["metadata"][n]
        for n in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
        if n in body["metadata"]
    }
    status: Body = {"replicas": at_path(body, kind.scale.status_replicas) or 0}
    selector = at_path(body, kind.scale.selector) if kind.scale.selector else None
    if selector:
        status["selector"] = selector if isinstance(selector, str) else _shown(selector)
    replicas = at_path(body, kind.scale.replicas)
    spec = {"replicas": replicas} if replicas else {}
    return {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": meta, "spec": spec, "status": status}


def scaled(kind: Kind, body: Body, scale: Body) -> Body:
    """The object with the replicas of a Scale, and with its uid and resourceVersion, which are preconditions."""
    assert kind.scale is not None
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    if not isinstance(replicas, int) or replicas < 0:
        error = api_status.invalid_value("spec.replicas", replicas, "must be greater than or equal to 0")
        shown = replace(kind, kind="Scale", group="autoscaling")
        raise api_status.invalid(shown, body["metadata"]["name"], [error])
    given = {name: value for name, value in (scale.get("metadata") or {}).items() if name in {"uid", "resourceVersion"}}
    meant: Body = {**body, "metadata": {**body["metadata"], **given}}
    return _with(meant, kind.scale.replicas.strip(".").split("."), replicas)


def _with(body: Body, path: list[str], value: Any) -> Body:
    first, *rest = path
    return {**body, first: _with(body.get(first) or {}, rest, value) if rest else value}


def _shown(selector: Body) -> str:
    parts = []
    for r in selectors.of_label_selector(selector):
        values = f"{r.key} {r.operator} ({','.join(sorted(r.values))})"
        one = f"{r.key}={r.values[0]}" if len(r.values) == 1 else values
        parts.append({"in": one, "notin": values, "exists": r.key}.get(r.operator, f"!{r.key}"))
    return ",".join(parts)


class Subresources:
    def __init__(self, store: Store, deleting: Deleting, identities: Identities) -> None:
        self._store = store
        self._deleting = deleting
        self._identities = identities
        self.logs: dict[tuple[str, str, str], str] = {}
        """Container logs by namespace, pod and container; controllers write them."""

    def log(self, ask: Ask) -> Outcome:
        pod = reads.named(self._store, ask).body
        names = [container["name"] for container in pod.get("spec", {}).get("containers", ())]
        container = ask.extra.get("container") or names[0]
        if len(names) > 1 and "container" not in ask.extra:
            listed = ", ".join(names)
            what = f"a container name must be specified for pod {ask.name}, choose one of: [{listed}]"
            raise api_status.bad_request(what)
        if container not in names:
            raise api_status.bad_request(f"container {container} is not valid for pod {ask.name}")
        text = self.logs.get((ask.namespace, ask.name, container), "")
        tail = ask.extra.get("tailLines", "")
        if tail.isdecimal():
            lines = text.splitlines(keepends=True)
            text = "".join(lines[len(lines) - int(tail) :] if int(tail) < len(lines) else lines)
        return Outcome(200, text)

    def evict(self, ask: Ask) -> Outcome:
        """Delete a pod unless that violates a PodDisruptionBudget."""
        if (ask.body or {}).get("metadata", {}).get("name", ask.name) != ask.name:
            raise api_status.bad_request("name in URL does not match name in Eviction object")
        pod = reads.named(self._store, ask).body
        options = (ask.body or {}).get("deleteOptions") or {}
        is_dry = ask.options.dry_run or bool(options.get("dryRun"))
        for stored in self._store.list(BUDGETS, ask.namespace):
            budget = stored.body
            wanted = selectors.of_label_selector(budget.get("spec", {}).get("selector") or {})
            if not selectors.match(wanted, pod["metadata"].get("labels", {}).get):
                continue
            if pod.get("status", {}).get("phase") != "Pending" and not budget.get("status", {}).get(
                "disruptionsAllowed"
            ):
                raise _budget_refusal(stored.name, budget)
            if not is_dry and budget.get("status", {}).get("disruptionsAllowed"):
                self._spend(budget)
        conditions = options.get("preconditions") or {}
        asked = structs.replace(
            ask.options,
            dry_run=is_dry,
            uid=conditions.get("uid", ""),
            resource_version=conditions.get("resourceVersion", ""),
            grace=options.get("gracePeriodSeconds", ask.options.grace),
        )
        self._deleting.delete(structs.replace(ask, options=asked))
        return Outcome(201, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})

    def _spend(self, budget: Body) -> None:
        """Allow one disruption less, until the disruption controller updates the status of the budget."""
        status = budget["status"]
        self._store.put(
            BUDGETS, {**budget, "status": {**status, "disruptionsAllowed": status["disruptionsAllowed"] - 1}}
        )

    def token(self, ask: Ask) -> Outcome:
        account = reads.named(self._store, ask)
        spec = {"expirationSeconds": 3600, "audiences": [AUDIENCE], **((ask.body or {}).get("spec") or {})}
        if spec["expirationSeconds"] < SHORTEST:
            why = "may not specify a duration less than 10 minutes"
            error = api_status.invalid_value("spec.expirationSeconds", spec["expirationSeconds"], why)
            raise api_status.invalid(replace(ask.kind, kind="TokenRequest", group="authentication.k8s.io"), "", [error])
        meta = {"name": ask.name, "namespace": ask.namespace}
        status = self._identities.service_account_token(account, spec)
        head = {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1"}
        return Outcome(201, {**head, "metadata": meta, "spec": spec, "status": status})


def _budget_refusal(name: str, budget: Body) -> api_status.Refusal:
    status = budget.get("status", {})
    needs, has = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
    refusal = api_status.too_many("Cannot evict pod as it would violate the pod's disruption budget.", 0)
    message = f"The disruption budget {name} needs {needs} healthy pods and has {has} currently"
    refusal.details = {"causes": [{"reason": "DisruptionBudget", "message": message}]}
    return refusal
