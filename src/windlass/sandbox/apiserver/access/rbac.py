"""RBAC authorization with Roles, ClusterRoles and their bindings (if enforced), and the review APIs.

Without RBAC every user with credentials may do everything; an anonymous user may still only read health and version.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from windlass.sandbox.apiserver.requests import AUTHENTICATED, MASTERS, UNAUTHENTICATED, UserInfo
from windlass.sandbox.apiserver.wire import api_status

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windlass.sandbox.apiserver.access.authentication import Authenticator
    from windlass.sandbox.apiserver.requests import ApiRequest
    from windlass.sandbox.apiserver.store import Store
    from windlass.sandbox.apiserver.wire.api_status import Body

NAME_SELECTOR = re.compile(r"metadata\.name==?([^,!=]+)")
"""A list or watch of one object, which a rule with `resourceNames` permits."""
RBAC_GROUP = "rbac.authorization.k8s.io"
# Rules for every authenticated user, as in the default ClusterRoles of a real cluster.
AUTHENTICATED_RULES: list[Body] = [
    {"verbs": ["create"], "apiGroups": ["authorization.k8s.io"],
     "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"]},
    {"verbs": ["create"], "apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"]},
    {"verbs": ["get"], "nonResourceURLs": ["/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi",
                                           "/openapi/*", "/readyz", "/version", "/version/"]},
]  # fmt: skip


UNAUTHENTICATED_RULE: Body = {
    "verbs": ["get"],
    "nonResourceURLs": ["/healthz", "/livez", "/readyz", "/version", "/version/"],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationAttributes:
    """What a user wants to do, in terms of RBAC."""

    verb: str
    group: str = ""
    resource: str = ""
    """Including the subresource: `pods/log`."""
    namespace: str = ""
    name: str = ""
    path: str = ""


def request_attributes(request: ApiRequest) -> AuthorizationAttributes:
    kind = request.kind
    resource = f"{kind.plural}/{request.subresource}" if request.subresource else kind.plural
    namespace = request.name if kind.id == "namespaces" else request.namespace
    name = request.name or (found[1] if (found := NAME_SELECTOR.fullmatch(request.options.fields)) else "")
    return AuthorizationAttributes(
        verb=request.verb, group=kind.group, resource=resource, namespace=namespace, name=name
    )


class RbacAuthorizer:
    def __init__(self, store: Store, authenticator: Authenticator, *, enforce: bool) -> None:
        self._store = store
        self._authenticator = authenticator
        self.enforce = enforce

    def authorize(self, request: ApiRequest) -> None:
        if self._is_unrestricted(request.user) or self.allows(request.user, attributes := request_attributes(request)):
            return
        where = f'in the namespace "{request.namespace}"' if request.namespace else "at the cluster scope"
        what = f'cannot {attributes.verb} resource "{attributes.resource}" in API group "{attributes.group}" {where}'
        raise api_status.forbidden_error(request.kind, request.name, f'User "{request.user.name}" {what}')

    def authorize_path(self, user: UserInfo, path: str) -> None:
        if not self.allows(user, AuthorizationAttributes(verb="get", path=path)):
            raise api_status.StatusError(
                403, "Forbidden", f'forbidden: User "{user.name}" cannot get path "{path}"', {}
            )

    def authorize_impersonation(self, user: UserInfo, name: str) -> None:
        if not self.allows(user, AuthorizationAttributes(verb="impersonate", resource="users", name=name)):
            what = f'User "{user.name}" cannot impersonate resource "users" in API group "" at the cluster scope'
            details = {"name": name, "kind": "users"}
            raise api_status.StatusError(403, "Forbidden", f'users "{name}" is forbidden: {what}', details)

    def prevent_escalation(self, request: ApiRequest, after: Body) -> None:
        """Prevent privilege escalation: a user may grant only permissions that they have."""
        if request.kind.group != RBAC_GROUP or not self.enforce or MASTERS in request.user.groups:
            return
        granted = after.get("rules") or (
            self._role_rules(after["roleRef"], request.namespace) if "roleRef" in after else []
        )
        missing = [rule for rule in granted if not self._holds_permissions(request, rule)]
        if missing:
            listed = "\n".join(
                f"{{APIGroups:{rule.get('apiGroups')}, Resources:{rule.get('resources')}, Verbs:{rule.get('verbs')}}}"
                for rule in missing
            ).replace("'", '"')
            user = request.user
            why = f'user "{user.name}" (groups={list(user.groups)}) is attempting to grant RBAC permissions '
            name = after["metadata"]["name"]
            raise api_status.forbidden_error(request.kind, name, f"{why}not currently held:\n{listed}")

    def _holds_permissions(self, request: ApiRequest, rule: Body) -> bool:
        triples = product(rule.get("verbs") or (), rule.get("apiGroups") or (), rule.get("resources") or ())
        return all(
            self.allows(
                request.user,
                AuthorizationAttributes(verb=verb, group=group, resource=resource, namespace=request.namespace),
            )
            for verb, group, resource in triples
        )

    def allows(self, user: UserInfo, attributes: AuthorizationAttributes) -> bool:
        return self._allow_reason(user, attributes) is not None

    def _is_unrestricted(self, user: UserInfo) -> bool:
        return MASTERS in user.groups or not (self.enforce or UNAUTHENTICATED in user.groups)

    def _allow_reason(self, user: UserInfo, attributes: AuthorizationAttributes) -> str | None:
        """Why the user may do this, as a text; `None` if they may not."""
        if self._is_unrestricted(user):
            return ""
        return next(
            (why for why, rule in self.applicable_rules(user, attributes.namespace) if _rule_allows(rule, attributes)),
            None,
        )

    def applicable_rules(self, user: UserInfo, namespace: str) -> Iterator[tuple[str, Body]]:
        """The rules that apply to a user in a namespace, each with the reason why it applies."""
        yield from (
            (("", rule) for rule in AUTHENTICATED_RULES)
            if AUTHENTICATED in user.groups
            else [("", UNAUTHENTICATED_RULE)]
        )
        bindings = [(f"clusterrolebindings.{RBAC_GROUP}", "")]
        bindings += [(f"rolebindings.{RBAC_GROUP}", namespace)] if namespace else []
        for kind_id, binding_namespace in bindings:
            for stored in self._store.list(kind_id, binding_namespace):
                binding = stored.body
                ref = binding["roleRef"]
                subject = next(
                    (s for s in binding.get("subjects", ()) if _matches_subject(s, user, binding_namespace)), None
                )
                if subject is None:
                    continue
                kind, name = (
                    ("RoleBinding", f"{stored.name}/{binding_namespace}")
                    if binding_namespace
                    else ("ClusterRoleBinding", stored.name)
                )
                subject_text = f'{subject["kind"]} "{subject["name"]}' + (
                    f'/{subject.get("namespace", binding_namespace)}"' if binding_namespace else '"'
                )
                reason = f'RBAC: allowed by {kind} "{name}" of {ref["kind"]} "{ref["name"]}" to {subject_text}'
                yield from ((reason, rule) for rule in self._role_rules(ref, binding_namespace))

    def _role_rules(self, ref: Body, namespace: str) -> list[Body]:
        plural, role_namespace = ("roles", namespace) if ref["kind"] == "Role" else ("clusterroles", "")
        found = self._store.get(f"{plural}.{RBAC_GROUP}", role_namespace, ref["name"])
        rules: list[Body] = found.body.get("rules") or [] if found else []
        return rules

    def review(self, request: ApiRequest) -> Body:
        """Fill in the status of a review object (TokenReview, SubjectAccessReview and others)."""
        spec = (request.body or {}).get("spec") or {}
        evaluate = {
            "TokenReview": self._token_review,
            "SelfSubjectReview": lambda ask, _: {"userInfo": ask.user.body},
            "SelfSubjectRulesReview": self._rules_review,
        }.get(request.kind.kind, self._access_review)
        body = {**request.body, **request.kind.type_meta, "status": evaluate(request, spec)}
        body["metadata"] = {"creationTimestamp": None, **(body.get("metadata") or {})}
        return body

    def _token_review(self, request: ApiRequest, spec: Body) -> Body:
        del request
        token, audiences = spec.get("token", ""), spec.get("audiences")
        user = self._authenticator.authenticate_token(token, audiences)
        if user is None:
            return {"user": {}, "error": "invalid bearer token"}
        accepted = [name for name in self._authenticator.token_audiences(token) if not audiences or name in audiences]
        return {"authenticated": True, "user": user.body, "audiences": accepted}

    def _rules_review(self, request: ApiRequest, spec: Body) -> Body:
        rules = [rule for _, rule in self.applicable_rules(request.user, spec.get("namespace", ""))]
        if self._is_unrestricted(request.user):
            rules = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]
        resources = [rule for rule in rules if "nonResourceURLs" not in rule]
        non_resources = [rule for rule in rules if "nonResourceURLs" in rule]
        return {"resourceRules": resources, "nonResourceRules": non_resources, "incomplete": False}

    def _access_review(self, request: ApiRequest, spec: Body) -> Body:
        user = request.user
        if not request.kind.kind.startswith("Self"):
            user = UserInfo(spec.get("user", ""), tuple(spec.get("groups", ())))
        attributes = spec.get("resourceAttributes")
        if (attributes is None) == ("nonResourceAttributes" not in spec):
            what = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
            raise api_status.invalid(request.kind, "", [api_status.invalid_value("spec.resourceAttributes", "", what)])
        if attributes is None:
            path_attributes = spec["nonResourceAttributes"]
            reason = self._allow_reason(
                user,
                AuthorizationAttributes(verb=path_attributes.get("verb", ""), path=path_attributes.get("path", "")),
            )
        else:
            resource = "/".join(filter(None, (attributes.get("resource"), attributes.get("subresource"))))
            rest = {name: attributes.get(name, "") for name in ("verb", "group", "namespace", "name")}
            reason = self._allow_reason(user, AuthorizationAttributes(resource=resource, **rest))
        return {"allowed": reason is not None, **({"reason": reason} if reason else {})}


def _rule_allows(rule: Body, attributes: AuthorizationAttributes) -> bool:
    if not _includes(rule.get("verbs"), attributes.verb):
        return False
    if attributes.path:
        urls = rule.get("nonResourceURLs", ())
        return any(
            url in {"*", attributes.path} or (url[-1] == "*" and attributes.path.startswith(url[:-1])) for url in urls
        )
    resources = rule.get("resources") or ()
    sub = attributes.resource.partition("/")[2]
    if attributes.resource not in resources and "*" not in resources and f"*/{sub}" not in resources:
        return False
    names = rule.get("resourceNames")
    return _includes(rule.get("apiGroups"), attributes.group) and (not names or attributes.name in names)


def _includes(listed: Any, value: str) -> bool:
    return bool(listed) and ("*" in listed or value in listed)


def _matches_subject(subject: Body, user: UserInfo, namespace: str) -> bool:
    kind, name = subject["kind"], subject["name"]
    if kind == "Group":
        return name in user.groups
    if kind == "User":
        return bool(name == user.name)
    return user.name == f"system:serviceaccount:{subject.get('namespace') or namespace}:{name}"
