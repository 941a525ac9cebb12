"""Authentication: bearer tokens that the sandbox issues, and impersonation."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from windlass.sandbox.apiserver.requests import ADMIN, ANONYMOUS, AUTHENTICATED, MASTERS, UserInfo
from windlass.sandbox.apiserver.wire.api_status import StatusError
from windlass.sandbox.clock import format_timestamp

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windlass.sandbox.apiserver.store import Store, StoredObject
    from windlass.sandbox.apiserver.wire.api_status import Body
    from windlass.sandbox.clock import SandboxClock

API_AUDIENCE = "https://kubernetes.default.svc.cluster.local"


class Authenticator:
    def __init__(self, store: Store, clock: SandboxClock) -> None:
        self._store = store
        self._clock = clock
        self._key = clock.random_bytes(32)
        self._cached_claims = lru_cache(maxsize=256)(self._verify_token)
        self.admin_token = self.issue_token(ADMIN)

    def issue_token(self, user: UserInfo) -> str:
        """A token that never expires, for kubeconfigs and tests."""
        return self._sign({"sub": user.name, "groups": list(user.groups), "uid": user.uid})

    def issue_service_account_token(self, account: StoredObject, spec: Body) -> Body:
        """Issue a token; returns the status of the TokenRequest."""
        seconds = int(spec.get("expirationSeconds") or 3600)
        now = int(self._clock.now().timestamp())
        bound_object = spec.get("boundObjectRef") or {}
        bound_objects: Body = {"serviceaccount": {"name": account.name, "uid": account.uid}}
        if bound_object.get("kind") == "Pod":
            bound_objects["pod"] = {"name": bound_object["name"], "uid": bound_object["uid"]}
        claims = {
            "aud": spec["audiences"],
            "exp": now + seconds,
            "iat": now,
            "iss": API_AUDIENCE,
            "jti": self._clock.uid(),
            "kubernetes.io": {"namespace": account.namespace, **bound_objects},
            "nbf": now,
            "sub": f"system:serviceaccount:{account.namespace}:{account.name}",
        }
        expires_at = self._clock.now().fromtimestamp(now + seconds, tz=self._clock.now().tzinfo)
        return {"token": self._sign(claims), "expirationTimestamp": format_timestamp(expires_at)}

    def authenticate_token(self, token: str, audiences: list[str] | None = None) -> UserInfo | None:
        """The user of a token; `None` if it is not valid.

        A valid token was issued here, has not expired, is for one of the audiences (default: the API server), and its
        service account and pod still exist with the same uid.
        """
        claims = self._cached_claims(token)
        if claims is None:
            return None
        if "kubernetes.io" not in claims:
            return UserInfo(claims["sub"], tuple(claims["groups"]), claims["uid"])
        bound_objects = claims["kubernetes.io"]
        account, pod = bound_objects["serviceaccount"], bound_objects.get("pod", {"name": "", "uid": ""})
        for uid in filter(None, (account["uid"], pod["uid"])):
            if self._store.by_uid(uid) is None:
                return None
        if claims["exp"] <= self._clock.now().timestamp() or not set(claims["aud"]) & set(audiences or [API_AUDIENCE]):
            return None
        user = service_account_user(bound_objects["namespace"], account["name"], account["uid"])
        return replace(user, pod=(pod["name"], pod["uid"]))

    def token_audiences(self, token: str) -> list[str]:
        claims = self._cached_claims(token) or {}
        audiences: list[str] = claims.get("aud", [API_AUDIENCE])
        return audiences

    def authenticate(self, headers: Mapping[str, str]) -> UserInfo:
        if "Authorization" not in headers:
            return ANONYMOUS
        kind, _, token = headers.get("Authorization", "").partition(" ")
        user = self.authenticate_token(token.strip()) if kind.lower() == "bearer" else None
        if user is None:
            raise StatusError(401, "Unauthorized", "Unauthorized")
        return user

    def _sign(self, claims: Body) -> str:
        parts = [_base64url(msgspec.json.encode(part)) for part in ({"alg": "HS256", "kid": "sandbox"}, claims)]
        text = ".".join(parts)
        return f"{text}.{_base64url(hmac.digest(self._key, text.encode(), hashlib.sha256))}"

    def _verify_token(self, token: str) -> Any:
        text, _, signature = token.rpartition(".")
        expected = _base64url(hmac.digest(self._key, text.encode(), hashlib.sha256))
        if not hmac.compare_digest(signature.encode(), expected.encode()):
            return None
        try:
            return msgspec.json.decode(base64.urlsafe_b64decode(text.partition(".")[2] + "=="))
        except (binascii.Error, msgspec.MsgspecError):
            return None


def service_account_user(namespace: str, name: str, uid: str = "") -> UserInfo:
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", AUTHENTICATED)
    return UserInfo(f"system:serviceaccount:{namespace}:{name}", groups, uid)


def controller_user(name: str, namespace: str = "kube-system") -> UserInfo:
    """The user of one of the cluster's own controllers, which may do everything."""
    account = service_account_user(namespace, name)
    return UserInfo(account.name, (*account.groups, MASTERS))


def impersonated_user(headers: Mapping[str, str]) -> UserInfo:
    """The user that the request wants to impersonate."""
    name = headers["Impersonate-User"]
    prefix, _, rest = name.partition("system:serviceaccount:")
    if not prefix and rest:
        return service_account_user(*rest.split(":", 1))
    groups = tuple(filter(None, headers.get("Impersonate-Group", "").replace(" ", "").split(",")))
    return UserInfo(name, (*groups, *(() if AUTHENTICATED in groups else (AUTHENTICATED,))))


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
