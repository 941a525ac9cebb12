"""Permission checks by SelfSubjectAccessReview, made before a run changes anything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from windlass.errors import WindlassError
from windlass.kube.client.resources import Resource

if TYPE_CHECKING:
    from collections.abc import Iterable

    from windlass.kube.client.readers import KubeReader

ACCESS_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False
)


class Unpermitted(WindlassError):
    """Lists every missing permission at once."""

    recommendation_key = "CredentialsInvalid"


@dataclass(frozen=True, slots=True)
class Permission:
    verb: str
    resource: Resource
    namespace: str = ""
    """Empty means all namespaces."""

    def __str__(self) -> str:
        location = f"in {self.namespace}" if self.namespace else "in the whole cluster"
        return f"{self.verb} {self.resource} {location}"


async def require_permissions(reader: KubeReader, permissions: Iterable[Permission]) -> None:
    """Raise `Unpermitted` unless the API server allows all of them."""
    missing = [str(permission) for permission in permissions if not await _is_allowed(reader, permission)]
    if missing:
        hint = "grant them to these credentials, or use others; nothing was changed"
        raise Unpermitted(f"rights are missing: {', '.join(missing)}", where=reader.server, hint=hint)


async def _is_allowed(reader: KubeReader, permission: Permission) -> bool:
    attributes = {
        "verb": permission.verb,
        "group": permission.resource.group,
        "resource": permission.resource.plural,
        "namespace": permission.namespace,
    }
    review = await reader.review(ACCESS_REVIEWS, {"resourceAttributes": attributes})
    return bool((review.get("status") or {}).get("allowed"))
