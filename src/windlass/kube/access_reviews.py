"""Permission checks by SelfSubjectAccessReview, made before a run changes anything; and who the user is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from windlass.errors import WindlassError
from windlass.kube.api_errors import KubeError
from windlass.kube.client.resources import Resource

if TYPE_CHECKING:
    from collections.abc import Iterable

    from windlass.kube.client.readers import KubeReader

ACCESS_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False
)
SELF_REVIEWS = Resource("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False)


class Unpermitted(WindlassError):
    """Lists every missing permission at once."""

    recommendation_key = "RightsMissing"


@dataclass(frozen=True, slots=True)
class UserIdentity:
    """The user as which the API server knows this client."""

    name: str = ""
    """Empty if the server does not tell."""
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Permission:
    verb: str
    resource: Resource
    namespace: str = ""
    """Empty means all namespaces."""
    name: str = ""
    """Of the object; empty means any. A role may permit one name only."""

    def __str__(self) -> str:
        location = f"in {self.namespace}" if self.namespace else "in the whole cluster"
        return f"{self.verb} {self.resource} {location}"


async def require_permissions(reader: KubeReader, permissions: Iterable[Permission]) -> None:
    """Raise `Unpermitted` unless the API server allows all of them."""
    missing = [str(permission) for permission in permissions if not await _is_allowed(reader, permission)]
    if missing:
        user = (await read_identity(reader)).name
        what = f"user {user} lacks rights" if user else "rights are missing"
        hint = "the credentials are valid; an administrator can grant the rights; nothing was changed"
        raise Unpermitted(f"{what}: {', '.join(missing)}", where=reader.server, hint=hint)


async def read_identity(reader: KubeReader) -> UserIdentity:
    try:
        review = await reader.review(SELF_REVIEWS, {})
    except KubeError:  # servers before 1.28 do not serve it
        return UserIdentity()
    user = (review.get("status") or {}).get("userInfo") or {}
    return UserIdentity(str(user.get("username") or ""), tuple(user.get("groups") or ()))


async def _is_allowed(reader: KubeReader, permission: Permission) -> bool:
    attributes = {
        "verb": permission.verb,
        "group": permission.resource.group,
        "resource": permission.resource.plural,
        "namespace": permission.namespace,
        "name": permission.name,
    }
    review = await reader.review(ACCESS_REVIEWS, {"resourceAttributes": attributes})
    return bool((review.get("status") or {}).get("allowed"))
