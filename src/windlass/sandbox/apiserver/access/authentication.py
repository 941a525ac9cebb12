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

from windlass.sandbox.apiserver.requests import ADMIN, ANONYMOUS, AUTHENTICATED, MASTERS, User
from windlass.sandbox.apiserver.wire.api_status import Refusal
from windlass.sandbox.clock import told

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windlass.sandbox.apiserver.store import Store, Stored
    from windlass.sandbox.apiserver.wire.api_status import Body
    from windlass.sandbox.clock import Sources

AUDIENCE = "https://kubernetes.default.svc.cluster.local"


class Identities:
    def __init__(self, store: Store, sources: Sources) -> None:
        self._store = store
        self._sources = sources
        self._key = sources.chance.getrandbits(256).to_bytes(32, "big")
        self._verified = lru_cache(maxsize=256)(self._verify)
        self.unknown = ANONYMOUS
        """User of requests without credentials."""
        self.admin_token = self.token_for(ADMIN)

    def token_for(self, user: User) -> str:
        """A token that never expires, for kubeconfigs and tests."""
        return self._signed({"sub": user.name, "groups": list(user.groups), "uid": user.uid})

    def service_account_token(self, account: Stored, spec: Body) -> Body:
        """Issue a token; returns the status of the TokenRequest."""
        seconds = int(spec.get("expirationSeconds") or 3600)
        now = int(self._sources.now().timestamp())
        bound = spec.get("boundObjectRef") or {}
        holders: Body = {"serviceaccount": {"name": account.name, "uid": account.uid}}
        if bound.get("kind") == "Pod":
            holders["pod"] = {"name": bound["name"], "uid": bound["uid"]}
        claims = {
            "aud": spec["audiences"],
            "exp": now + seconds,
            "iat": now,
            "iss": AUDIENCE,
            "jti": self._sources.uid(),
            "kubernetes.io": {"namespace": account.namespace, **holders},
            "nbf": now,
            "sub": f"system:serviceaccount:{account.namespace}:{account.name}",
        }
        ends = self._sources.now().fromtimestamp(now + seconds, tz=self._sources.now().tzinfo)
        return {"token": self._signed(claims), "expirationTimestamp": told(ends)}

    def user_of(self, token: str, audiences: list[str] | None = None) -> User | None:
        """The user of a token; `None` if it is not valid.

        A valid token was issued here, has not expired, is for one of the audiences (default: the API server), and its
        service account and pod still exist with the same uid.
        """
        claims = self._verified(token)
        if claims is None:
            return None
        if "kubernetes.io" not in claims:
            return User(claims["sub"], tuple(claims["groups"]), claims["uid"])
        holders = claims["kubernetes.io"]
        account, pod = holders["serviceaccount"], holders.get("pod", {"name": "", "uid": ""})
        for holder in filter(None, (account["uid"], pod["uid"])):
            if self._store.by_uid(holder) is None:
                return None
        if claims["exp"] <= self._sources.now().timestamp() or not set(claims["aud"]) & set(audiences or [AUDIENCE]):
            return None
        user = account_user(holders["namespace"], account["name"], account["uid"])
        return replace(user, pod=(pod["name"], pod["uid"]))

    def audiences_of(self, token: str) -> list[str]:
        claims = self._verified(token) or {}
        found: list[str] = claims.get("aud", [AUDIENCE])
        return found

    def authenticated(self, headers: Mapping[str, str]) -> User:
        if "Authorization" not in headers:
            return self.unknown
        kind, _, token = headers.get("Authorization", "").partition(" ")
        user = self.user_of(token.strip()) if kind.lower() == "bearer" else None
        if user is None:
            raise Refusal(401, "Unauthorized", "Unauthorized")
        return user

    def _signed(self, claims: Body) -> str:
        parts = [_encode(msgspec.json.encode(part)) for part in ({"alg": "HS256", "kid": "sandbox"}, claims)]
        text = ".".join(parts)
        return f"{text}.{_encode(hmac.digest(self._key, text.encode(), hashlib.sha256))}"

    def _verify(self, token: str) -> Any:
        text, _, signature = token.rpartition(".")
        wanted = _encode(hmac.digest(self._key, text.encode(), hashlib.sha256))
        if not hmac.compare_digest(signature.encode(), wanted.encode()):
            return None
        try:
            return msgspec.json.decode(base64.urlsafe_b64decode(text.partition(".")[2] + "=="))
        except (binascii.Error, msgspec.MsgspecError):
            return None


def account_user(namespace: str, name: str, uid: str = "") -> User:
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", AUTHENTICATED)
    return User(f"system:serviceaccount:{namespace}:{name}", groups, uid)


def controller(name: str, namespace: str = "kube-system") -> User:
    """The user of one of the cluster's own controllers, which may do everything."""
    account = account_user(namespace, name)
    return User(account.name, (*account.groups, MASTERS))


def impersonated(headers: Mapping[str, str]) -> User:
    """The user that the request wants to impersonate."""
    name = headers["Impersonate-User"]
    prefix, _, rest = name.partition("system:serviceaccount:")
    if not prefix and rest:
        return account_user(*rest.split(":", 1))
    groups = tuple(filter(None, headers.get("Impersonate-Group", "").replace(" ", "").split(",")))
    return User(name, (*groups, *(() if AUTHENTICATED in groups else (AUTHENTICATED,))))


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
