"""The answers of Argo CD's API server that a plan needs: rendered manifests, and the comparison with live objects."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import msgspec

from windlass.sandbox.apiserver.objects import patches
from windlass.sandbox.apiserver.requests import ApiResult
from windlass.sandbox.argocd import application_specs
from windlass.sandbox.argocd.comparison import APPLICATIONS
from windlass.sandbox.argocd.repositories import ComparisonFailure

if TYPE_CHECKING:
    from windlass.sandbox.apiserver.wire.api_status import Body
    from windlass.sandbox.argocd.application_controller import ApplicationController
    from windlass.sandbox.argocd.comparison import ComparedResource

MASKED = "++++++++"


@dataclass(frozen=True, slots=True)
class RenderingApi:
    controller: ApplicationController
    token: str = field(repr=False)

    def answer(self, request: dict[str, str]) -> ApiResult:
        if request["cookie"] != f"argocd.token={self.token}":
            return _error(401, 16, "no session information")
        name, _, what = request["path"].removeprefix("api/v1/applications/").partition("/")
        query = parse_qs(request["query"])
        app = self.controller.find(APPLICATIONS, name, query.get("appNamespace", [application_specs.NAMESPACE])[0])
        if app is None or what not in {"manifests", "managed-resources"}:
            return _error(404, 5, f'applications.argoproj.io "{name}" not found')
        revisions = query.get("revisions") or query.get("revision") or []
        if what == "managed-resources":
            revisions = application_specs.get_revisions(app.get("status", {}).get("sync", {}))
        try:
            resources = self.controller.resources(app, self.controller.resolve(app, {}, revisions)[1])
        except ComparisonFailure as failure:
            return _error(500, 2, str(failure))
        if what == "manifests":
            return ApiResult(200, {"manifests": [_encode(item.target) for item in resources if item.target]})
        return ApiResult(200, {"items": [self._managed_resource(item) for item in resources]})

    def _managed_resource(self, item: ComparedResource) -> Body:
        kind, live = self.controller.catalogue.by_id(item.kind_id), item.live
        predicted: Any = live
        if live and item.target and kind and not item.is_synced:
            predicted = patches.strategic_merge_patch(live, item.target, kind.schema)
        states = {"targetState": item.target, "liveState": live, "normalizedLiveState": live}
        texts = {name: _encode(state) for name, state in {**states, "predictedLiveState": predicted}.items()}
        return {**item.reference, **texts, **({"hook": True} if item.hook else {})}


def _encode(body: Any) -> str:
    """The object as JSON, in which the values of a Secret are masked."""
    if body and body["kind"] == "Secret":
        body = {**body, "data": dict.fromkeys(body.get("data") or {}, MASKED)}
    return msgspec.json.encode(body).decode()


def _error(code: int, grpc_code: int, message: str) -> ApiResult:
    return ApiResult(code, {"error": message, "code": grpc_code, "message": message})
