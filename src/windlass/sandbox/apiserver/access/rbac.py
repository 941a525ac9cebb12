"""RBAC authorization with Roles, ClusterRoles and their bindings (if enforced), and the review APIs."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from windlass.sandbox.apiserver.requests import AUTHENTICATED, MASTERS, User
from windlass.sandbox.apiserver.wire import api_status

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windlass.sandbox.apiserver.access.authentication import Identities
    from windlass.sandbox.apiserver.requests import Ask
    from windlass.sandbox.apiserver.store import Store
    from windlass.sandbox.apiserver.wire.api_status import Body

RBAC = "rbac.authorization.k8s.io"
# Rules for every authenticated user, as in the default ClusterRoles of a real cluster.
EVERYBODY: list[Body] = [
    {"verbs": ["create"], "apiGroups": ["authorization.k8s.io"],
     "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"]},
    {"verbs": ["create"], "apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"]},
    {"verbs": ["get"], "nonResourceURLs": ["/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi",
                                           "/openapi/*", "/readyz", "/version", "/version/"]},
]  # fmt: skip


PUBLIC: Body = {"verbs": ["get"], "nonResourceURLs": ["/healthz", "/livez", "/readyz", "/version", "/version/"]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributes:
    """What a user wants to do, in terms of RBAC."""

    verb: str
    group: str = ""
    resource: str = ""
    """Including the subresource: `pods/log`."""
    namespace: str = ""
    name: str = ""
    path: str = ""


def attributes_of(ask: Ask) -> Attributes:
    kind = ask.kind
    resource = f"{kind.plural}/{ask.subresource}" if ask.subresource else kind.plural
    namespace = ask.name if kind.id == "namespaces" else ask.namespace
    return Attributes(verb=ask.verb, group=kind.group, resource=resource, namespace=namespace, name=ask.name)


class Authorizing:
    def __init__(self, store: Store, identities: Identities, *, enforce: bool) -> None:
        self._store = store
        self._identities = identities
        self.enforce = enforce

    def require(self, ask: Ask) -> None:
        if not self.enforce or self.allows(ask.user, wanted := attributes_of(ask)):
            return
        where = f'in the namespace "{ask.namespace}"' if ask.namespace else "at the cluster scope"
        what = f'cannot {wanted.verb} resource "{wanted.resource}" in API group "{wanted.group}" {where}'
        raise api_status.forbidden(ask.kind, ask.name, f'User "{ask.user.name}" {what}')

    def require_path(self, user: User, path: str) -> None:
        if not self.allows(user, Attributes(verb="get", path=path)):
            raise api_status.Refusal(403, "Forbidden", f'forbidden: User "{user.name}" cannot get path "{path}"', {})

    def require_impersonation(self, user: User, name: str) -> None:
        if not self.allows(user, Attributes(verb="impersonate", resource="users", name=name)):
            what = f'User "{user.name}" cannot impersonate resource "users" in API group "" at the cluster scope'
            details = {"name": name, "kind": "users"}
            raise api_status.Refusal(403, "Forbidden", f'users "{name}" is forbidden: {what}', details)

    def require_held(self, ask: Ask, after: Body) -> None:
        """Prevent privilege escalation: a user may grant only permissions that they have."""
        if ask.kind.group != RBAC or not self.enforce or MASTERS in ask.user.groups:
            return
        granted = after.get("rules") or (self._role(after["roleRef"], ask.namespace) if "roleRef" in after else [])
        missing = [rule for rule in granted if not self._holds(ask, rule)]
        if missing:
            shown = "\n".join(
                f"{{APIGroups:{rule.get('apiGroups')}, Resources:{rule.get('resources')}, Verbs:{rule.get('verbs')}}}"
                for rule in missing
            ).replace("'", '"')
            why = f'user "{ask.user.name}" (groups={list(ask.user.groups)}) is attempting to grant RBAC permissions '
            name = after["metadata"]["name"]
            raise api_status.forbidden(ask.kind, name, f"{why}not currently held:\n{shown}")

    def _holds(self, ask: Ask, rule: Body) -> bool:
        triples = product(rule.get("verbs") or (), rule.get("apiGroups") or (), rule.get("resources") or ())
        return all(
            self.allows(ask.user, Attributes(verb=verb, group=group, resource=resource, namespace=ask.namespace))
            for verb, group, resource in triples
        )

    def allows(self, user: User, wanted: Attributes) -> bool:
        return self._reason(user, wanted) is not None

    def _reason(self, user: User, wanted: Attributes) -> str | None:
        """Why the user may do this, as a text; `None` if they may not."""
        if not self.enforce or MASTERS in user.groups:
            return ""
        return next((why for why, rule in self.rules(user, wanted.namespace) if _grants(rule, wanted)), None)

    def rules(self, user: User, namespace: str) -> Iterator[tuple[str, Body]]:
        """The rules that apply to a user in a namespace, each with the reason why it applies."""
        yield from ((("", rule) for rule in EVERYBODY) if AUTHENTICATED in user.groups else [("", PUBLIC)])
        bindings = [(f"clusterrolebindings.{RBAC}", "")]
        bindings += [(f"rolebindings.{RBAC}", namespace)] if namespace else []
        for kind_id, where in bindings:
            for stored in self._store.list(kind_id, where):
                binding = stored.body
                ref = binding["roleRef"]
                subject = next((s for s in binding.get("subjects", ()) if _is_subject(s, user, where)), None)
                if subject is None:
                    continue
                kind, name = ("RoleBinding", f"{stored.name}/{where}") if where else ("ClusterRoleBinding", stored.name)
                whom = f'{subject["kind"]} "{subject["name"]}' + (
                    f'/{subject.get("namespace", where)}"' if where else '"'
                )
                why = f'RBAC: allowed by {kind} "{name}" of {ref["kind"]} "{ref["name"]}" to {whom}'
                yield from ((why, rule) for rule in self._role(ref, where))

    def _role(self, ref: Body, namespace: str) -> list[Body]:
        plural, where = ("roles", namespace) if ref["kind"] == "Role" else ("clusterroles", "")
        found = self._store.get(f"{plural}.{RBAC}", where, ref["name"])
        rules: list[Body] = found.body.get("rules") or [] if found else []
        return rules

    def review(self, ask: Ask) -> Body:
        """Fill in the status of a review object (TokenReview, SubjectAccessReview and others)."""
        spec = (ask.body or {}).get("spec") or {}
        answer = {
            "TokenReview": self._token_review,
            "SelfSubjectReview": lambda ask, _: {"userInfo": ask.user.body},
            "SelfSubjectRulesReview": self._rules_review,
        }.get(ask.kind.kind, self._access_review)
        body = {**ask.body, **ask.kind.head, "status": answer(ask, spec)}
        body["metadata"] = {"creationTimestamp": None, **(body.get("metadata") or {})}
        return body

    def _token_review(self, ask: Ask, spec: Body) -> Body:
        del ask
        token, audiences = spec.get("token", ""), spec.get("audiences")
        user = self._identities.user_of(token, audiences)
        if user is None:
            return {"user": {}, "error": "invalid bearer token"}
        meant = [name for name in self._identities.audiences_of(token) if not audiences or name in audiences]
        return {"authenticated": True, "user": user.body, "audiences": meant}

    def _rules_review(self, ask: Ask, spec: Body) -> Body:
        found = [rule for _, rule in self.rules(ask.user, spec.get("namespace", ""))]
        if not self.enforce or MASTERS in ask.user.groups:
            found = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]
        resources = [rule for rule in found if "nonResourceURLs" not in rule]
        others = [rule for rule in found if "nonResourceURLs" in rule]
        return {"resourceRules": resources, "nonResourceRules": others, "incomplete": False}

    def _access_review(self, ask: Ask, spec: Body) -> Body:
        user = ask.user
        if not ask.kind.kind.startswith("Self"):
            user = User(spec.get("user", ""), tuple(spec.get("groups", ())))
        wanted = spec.get("resourceAttributes")
        if (wanted is None) == ("nonResourceAttributes" not in spec):
            what = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
            raise api_status.invalid(ask.kind, "", [api_status.invalid_value("spec.resourceAttributes", "", what)])
        if wanted is None:
            other = spec["nonResourceAttributes"]
            why = self._reason(user, Attributes(verb=other.get("verb", ""), path=other.get("path", "")))
        else:
            resource = "/".join(filter(None, (wanted.get("resource"), wanted.get("subresource"))))
            rest = {name: wanted.get(name, "") for name in ("verb", "group", "namespace", "name")}
            why = self._reason(user, Attributes(resource=resource, **rest))
        return {"allowed": why is not None, **({"reason": why} if why else {})}


def _grants(rule: Body, wanted: Attributes) -> bool:
    if not _lists(rule.get("verbs"), wanted.verb):
        return False
    if wanted.path:
        urls = rule.get("nonResourceURLs", ())
        return any(url in {"*", wanted.path} or (url[-1] == "*" and wanted.path.startswith(url[:-1])) for url in urls)
    resources = rule.get("resources") or ()
    sub = wanted.resource.partition("/")[2]
    if wanted.resource not in resources and "*" not in resources and f"*/{sub}" not in resources:
        return False
    names = rule.get("resourceNames")
    return _lists(rule.get("apiGroups"), wanted.group) and (not names or wanted.name in names)


def _lists(listed: Any, value: str) -> bool:
    return bool(listed) and ("*" in listed or value in listed)


def _is_subject(subject: Body, user: User, namespace: str) -> bool:
    kind, name = subject["kind"], subject["name"]
    if kind == "Group":
        return name in user.groups
    if kind == "User":
        return bool(name == user.name)
    return user.name == f"system:serviceaccount:{subject.get('namespace') or namespace}:{name}"
