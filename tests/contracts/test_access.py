"""Who someone is, what they may do, and what they hear when they may not."""

from __future__ import annotations

import base64
import json
import re
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest

from tests.contracts.kinds import CONFIG_MAPS, ROLE_BINDINGS, ROLES, SECRETS, config_map, pod
from tests.contracts.servers import MERGE, until
from windlass.kube.client.resources import PODS, SERVICE_ACCOUNTS

if TYPE_CHECKING:
    from tests.contracts.servers import Raw, Server
    from windlass.kube.client.objects import RawObject

AUTHORIZATION = "authorization.k8s.io"
AUTHENTICATION = "authentication.k8s.io"
RBAC = "rbac.authorization.k8s.io"
ALL_ACCOUNTS = ("system:serviceaccounts", "system:authenticated")


async def review(raw: Raw, group: str, kind: str, spec: RawObject, namespace: str = "") -> RawObject:
    where = f"namespaces/{namespace}/" if namespace else ""
    body = {"apiVersion": f"{group}/v1", "kind": kind, "spec": spec}
    answer = await raw("POST", f"/apis/{group}/v1/{where}{kind.lower()}s", body)
    assert answer.status == 201
    found: RawObject = answer.json["status"]
    return found


async def token_of(raw: Raw, namespace: str, name: str, **spec: Any) -> RawObject:
    path = f"{SERVICE_ACCOUNTS.named(name, namespace).path}/token"
    body = {"apiVersion": f"{AUTHENTICATION}/v1", "kind": "TokenRequest", "spec": spec}
    answer = await raw("POST", path, body)
    assert answer.status == 201
    found: RawObject = answer.json
    return found


def claims(token: str) -> RawObject:
    part = token.split(".")[1]
    found: RawObject = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return found


@pytest.fixture
async def robot(raw: Raw, namespace: str) -> RawObject:
    item = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}}
    created: RawObject = await raw.ok("POST", SERVICE_ACCOUNTS.in_namespace(namespace).path, item)
    return created


@pytest.fixture
async def as_robot(raw: Raw, server: Server, namespace: str, robot: RawObject) -> Raw:
    assert robot
    return server.with_token((await token_of(raw, namespace, "robot"))["status"]["token"])


async def allow(raw: Raw, namespace: str, *rules: RawObject) -> None:
    """Gives the robot these rules in its namespace."""
    role = {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": {"name": "some"}, "rules": list(rules)}
    await raw.ok("POST", ROLES.in_namespace(namespace).path, role)
    binding = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "some"},
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "some"},
        "subjects": [{"kind": "ServiceAccount", "name": "robot", "namespace": namespace}],
    }
    await raw.ok("POST", ROLE_BINDINGS.in_namespace(namespace).path, binding)


async def test_an_account_is_told_who_it_is(as_robot: Raw, namespace: str, robot: RawObject) -> None:
    found = (await review(as_robot, AUTHENTICATION, "SelfSubjectReview", {}))["userInfo"]
    assert found["username"] == f"system:serviceaccount:{namespace}:robot"
    assert found["uid"] == robot["metadata"]["uid"]
    assert set(found["groups"]) == {f"system:serviceaccounts:{namespace}", *ALL_ACCOUNTS}


async def test_an_account_may_do_nothing_to_begin_with(as_robot: Raw, namespace: str) -> None:
    answer = await as_robot("GET", SECRETS.in_namespace(namespace).path)
    assert (answer.status, answer.reason) == (403, "Forbidden")
    user = f"system:serviceaccount:{namespace}:robot"
    assert answer.message == (
        f'secrets is forbidden: User "{user}" cannot list resource "secrets" in API group "" '
        f'in the namespace "{namespace}"'
    )
    assert answer.json["details"] == {"kind": "secrets"}


@pytest.mark.parametrize(
    ("method", "target", "body", "message"),
    [
        pytest.param(
            "GET", "/api/v1/namespaces/$NS/secrets/a", None,
            'secrets "a" is forbidden: User "$USER" cannot get resource "secrets" in API group "" '
            'in the namespace "$NS"',
            id="get",
        ),
        pytest.param(
            "POST", "/api/v1/namespaces/$NS/configmaps", config_map("a"),
            'configmaps is forbidden: User "$USER" cannot create resource "configmaps" in API group "" '
            'in the namespace "$NS"',
            id="create",
        ),
        pytest.param(
            "DELETE", "/apis/apps/v1/namespaces/$NS/deployments/a", None,
            'deployments.apps "a" is forbidden: User "$USER" cannot delete resource "deployments" in API group "apps" '
            'in the namespace "$NS"',
            id="delete",
        ),
        pytest.param(
            "GET", "/apis/apps/v1/deployments", None,
            'deployments.apps is forbidden: User "$USER" cannot list resource "deployments" in API group "apps" '
            "at the cluster scope",
            id="list everywhere",
        ),
        pytest.param(
            "GET", "/api/v1/namespaces/$NS/pods?watch=1", None,
            'pods is forbidden: User "$USER" cannot watch resource "pods" in API group "" in the namespace "$NS"',
            id="watch",
        ),
        pytest.param(
            "GET", "/api/v1/namespaces/$NS/pods/a/log", None,
            'pods "a" is forbidden: User "$USER" cannot get resource "pods/log" in API group "" in the namespace "$NS"',
            id="logs",
        ),
        pytest.param(
            "GET", "/apis/nonsense.example/v1/things", None,
            'things.nonsense.example is forbidden: User "$USER" cannot list resource "things" '
            'in API group "nonsense.example" at the cluster scope',
            id="what nobody serves, before it is found missing",
        ),
        pytest.param(
            "GET", "/metrics", None, 'forbidden: User "$USER" cannot get path "/metrics"', id="what is no resource"
        ),
    ],
)  # fmt: skip
async def test_a_refusal_names_who_what_and_where(
    as_robot: Raw, namespace: str, method: str, target: str, body: Any, message: str
) -> None:
    answer = await as_robot(method, target.replace("$NS", namespace), body)
    user = f"system:serviceaccount:{namespace}:robot"
    assert (answer.status, answer.reason) == (403, "Forbidden")
    assert answer.message == message.replace("$USER", user).replace("$NS", namespace)


@pytest.mark.parametrize("path", ["/version", "/api", "/apis", "/apis/apps/v1", "/openapi/v3", "/readyz"])
async def test_every_account_may_discover(as_robot: Raw, path: str) -> None:
    assert (await as_robot("GET", path)).status == 200


async def test_a_role_grants_exactly_its_verbs(raw: Raw, as_robot: Raw, namespace: str) -> None:
    await allow(raw, namespace, {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "get"]})
    path = CONFIG_MAPS.in_namespace(namespace).path

    async def is_allowed() -> bool:
        return (await as_robot("POST", path, config_map("a"))).status == 201

    await until(is_allowed, "the grant")
    assert (await as_robot("GET", f"{path}/a")).status == 200
    assert (await as_robot("PATCH", f"{path}/a", {}, MERGE)).status == 403
    assert (await as_robot("GET", path)).status == 403
    assert (await as_robot("GET", f"{CONFIG_MAPS.in_namespace('default').path}/kube-root-ca.crt")).status == 403


async def test_a_role_may_name_objects(raw: Raw, as_robot: Raw, namespace: str) -> None:
    rule = {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["a"], "verbs": ["get"]}
    await allow(raw, namespace, rule)
    path = CONFIG_MAPS.in_namespace(namespace).path
    for name in "ab":
        await raw.ok("POST", path, config_map(name))

    async def is_allowed() -> bool:
        return (await as_robot("GET", f"{path}/a")).status == 200

    await until(is_allowed, "the grant")
    assert (await as_robot("GET", f"{path}/b")).status == 403


async def test_a_role_that_names_objects_permits_a_list_that_selects_one(
    raw: Raw, as_robot: Raw, namespace: str
) -> None:
    rule = {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["a"], "verbs": ["list"]}
    await allow(raw, namespace, rule)
    path = CONFIG_MAPS.in_namespace(namespace).path
    await raw.ok("POST", path, config_map("a"))

    async def is_allowed() -> bool:
        return (await as_robot("GET", f"{path}?fieldSelector=metadata.name%3Da")).status == 200

    await until(is_allowed, "the grant")
    for query in ("", "?fieldSelector=metadata.name%3Db", "?fieldSelector=metadata.name%21%3Da"):
        assert (await as_robot("GET", f"{path}{query}")).status == 403


async def test_an_account_cannot_grant_more_than_it_has(raw: Raw, as_robot: Raw, namespace: str) -> None:
    await allow(raw, namespace, {"apiGroups": [RBAC], "resources": ["roles"], "verbs": ["create"]})
    more = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}
    role = {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": {"name": "more"}, "rules": [more]}

    async def refusal() -> str:
        answer = await as_robot("POST", ROLES.in_namespace(namespace).path, role)
        return answer.message if "attempting to grant RBAC permissions" in answer.message else ""

    assert "is forbidden: user" in await until(refusal, "a refusal of the escalation")


async def test_a_self_review_answers_what_one_may(raw: Raw, as_robot: Raw, namespace: str) -> None:
    attributes = {"namespace": namespace, "verb": "list", "resource": "configmaps"}
    before = await review(as_robot, AUTHORIZATION, "SelfSubjectAccessReview", {"resourceAttributes": attributes})
    assert before == {"allowed": False}
    await allow(raw, namespace, {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]})

    async def granted() -> RawObject:
        found = await review(as_robot, AUTHORIZATION, "SelfSubjectAccessReview", {"resourceAttributes": attributes})
        return found if found["allowed"] else {}

    reason = (await until(granted, "the grant"))["reason"]
    assert reason.startswith(
        f'RBAC: allowed by RoleBinding "some/{namespace}" of Role "some" to ServiceAccount "robot/'
    )
    other = {**attributes, "verb": "delete"}
    found = await review(as_robot, AUTHORIZATION, "SelfSubjectAccessReview", {"resourceAttributes": other})
    assert found["allowed"] is False


@pytest.mark.parametrize(
    ("attributes", "allowed"),
    [
        ({"resource": "pods", "subresource": "log", "verb": "get"}, True),
        ({"group": "*", "resource": "*", "verb": "*"}, True),
        ({"group": "argoproj.io", "resource": "applications", "verb": "patch"}, True),
    ],
)
async def test_an_administrator_may_everything(raw: Raw, attributes: RawObject, allowed: bool) -> None:
    found = await review(raw, AUTHORIZATION, "SelfSubjectAccessReview", {"resourceAttributes": attributes})
    assert found["allowed"] is allowed


async def test_a_review_of_a_path(raw: Raw, as_robot: Raw) -> None:
    spec = {"nonResourceAttributes": {"path": "/metrics", "verb": "get"}}
    assert (await review(raw, AUTHORIZATION, "SelfSubjectAccessReview", spec))["allowed"] is True
    assert (await review(as_robot, AUTHORIZATION, "SelfSubjectAccessReview", spec))["allowed"] is False


async def test_a_review_of_someone_else(raw: Raw, namespace: str, robot: RawObject) -> None:
    assert robot
    user = f"system:serviceaccount:{namespace}:robot"
    attributes = {"namespace": namespace, "verb": "get", "resource": "secrets"}
    spec = {"user": user, "groups": ["system:authenticated"], "resourceAttributes": attributes}
    assert (await review(raw, AUTHORIZATION, "SubjectAccessReview", spec))["allowed"] is False
    masters = {**spec, "groups": ["system:masters"]}
    assert (await review(raw, AUTHORIZATION, "SubjectAccessReview", masters))["allowed"] is True


async def test_rules_of_a_namespace(raw: Raw, as_robot: Raw, namespace: str) -> None:
    await allow(raw, namespace, {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]})

    async def rules() -> list[RawObject]:
        found = await review(as_robot, AUTHORIZATION, "SelfSubjectRulesReview", {"namespace": namespace})
        assert found["incomplete"] is False
        assert any("/version" in rule["nonResourceURLs"] for rule in found["nonResourceRules"])
        return [rule for rule in found["resourceRules"] if rule.get("resources") == ["configmaps"]]

    assert await until(rules, "the grant") == [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}
    ]


async def test_a_token_lasts_as_long_as_asked(raw: Raw, namespace: str, robot: RawObject) -> None:
    found = await token_of(raw, namespace, "robot", expirationSeconds=1200)
    carried = claims(found["status"]["token"])
    assert carried["sub"] == f"system:serviceaccount:{namespace}:robot"
    assert carried["exp"] - carried["iat"] == 1200
    assert carried["kubernetes.io"]["serviceaccount"]["uid"] == robot["metadata"]["uid"]
    expiry = datetime.fromisoformat(found["status"]["expirationTimestamp"])
    assert int(expiry.timestamp()) == carried["exp"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", found["status"]["expirationTimestamp"])


async def test_a_token_lasts_an_hour_unless_asked(raw: Raw, namespace: str, robot: RawObject) -> None:
    assert robot
    found = await token_of(raw, namespace, "robot")
    assert found["spec"]["expirationSeconds"] == 3600
    carried = claims(found["status"]["token"])
    assert carried["exp"] - carried["iat"] == 3600
    assert carried["aud"] == found["spec"]["audiences"]


async def test_a_token_for_another_audience_is_not_for_this_server(
    raw: Raw, server: Server, namespace: str, robot: RawObject
) -> None:
    assert robot
    token = (await token_of(raw, namespace, "robot", audiences=["elsewhere"]))["status"]["token"]
    assert claims(token)["aud"] == ["elsewhere"]
    answer = await server.with_token(token)("GET", "/version")
    assert (answer.status, answer.reason) == (401, "Unauthorized")


async def test_a_token_bound_to_a_pod_ends_with_it(raw: Raw, server: Server, namespace: str, robot: RawObject) -> None:
    assert robot
    path = PODS.in_namespace(namespace).path
    created = await raw.ok("POST", path, pod("a", account="robot"))
    bound = {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": created["metadata"]["uid"]}
    token = (await token_of(raw, namespace, "robot", boundObjectRef=bound))["status"]["token"]
    assert claims(token)["kubernetes.io"]["pod"] == {"name": "a", "uid": created["metadata"]["uid"]}
    found = await review(server.with_token(token), AUTHENTICATION, "SelfSubjectReview", {})
    assert found["userInfo"]["extra"]["authentication.kubernetes.io/pod-name"] == ["a"]
    fresh = (await token_of(raw, namespace, "robot", boundObjectRef=bound))["status"]["token"]
    await raw.ok("DELETE", f"{path}/a?gracePeriodSeconds=0")

    async def is_refused() -> bool:
        return (await server.with_token(fresh)("GET", "/version")).status == 401

    await until(is_refused, "the end of the token")


async def test_a_token_ends_with_its_account(raw: Raw, as_robot: Raw, namespace: str) -> None:
    """At once for a token not used before; one that was used may be believed for some seconds more."""
    await raw.ok("DELETE", SERVICE_ACCOUNTS.named("robot", namespace).path)

    async def is_refused() -> bool:
        return (await as_robot("GET", "/version")).status == 401

    await until(is_refused, "the end of the token")


async def test_a_token_review(raw: Raw, namespace: str, robot: RawObject) -> None:
    assert robot
    token = (await token_of(raw, namespace, "robot"))["status"]["token"]
    found = await review(raw, AUTHENTICATION, "TokenReview", {"token": token})
    assert found["authenticated"] is True
    assert found["user"]["username"] == f"system:serviceaccount:{namespace}:robot"
    assert found["audiences"]
    nobody = await review(raw, AUTHENTICATION, "TokenReview", {"token": "nonsense"})
    assert not nobody.get("authenticated")
    assert nobody["error"]


async def test_a_token_review_for_another_audience(raw: Raw, namespace: str, robot: RawObject) -> None:
    assert robot
    token = (await token_of(raw, namespace, "robot", audiences=["elsewhere"]))["status"]["token"]
    assert not (await review(raw, AUTHENTICATION, "TokenReview", {"token": token})).get("authenticated")
    found = await review(raw, AUTHENTICATION, "TokenReview", {"token": token, "audiences": ["elsewhere", "x"]})
    assert (found["authenticated"], found["audiences"]) == (True, ["elsewhere"])


async def test_a_token_that_is_none_is_unauthorized(server: Server) -> None:
    answer = await server.with_token("nonsense")("GET", "/api/v1/namespaces")
    assert (answer.status, answer.reason, answer.message) == (401, "Unauthorized", "Unauthorized")


async def test_without_credentials_one_is_anonymous(server: Server, namespace: str) -> None:
    answer = await server.anonymous()("GET", SECRETS.in_namespace(namespace).path)
    assert (answer.status, answer.reason) == (403, "Forbidden")
    assert 'User "system:anonymous" cannot list resource "secrets"' in answer.message
    assert (await server.anonymous()("GET", "/version")).status == 200
    assert (await server.anonymous()("GET", "/api")).status == 403


async def test_an_administrator_may_be_someone_else(raw: Raw, namespace: str) -> None:
    headers = (("Impersonate-User", "jane"), ("Impersonate-Group", "developers"), ("Impersonate-Group", "testers"))
    body = {"apiVersion": f"{AUTHENTICATION}/v1", "kind": "SelfSubjectReview"}
    answer = await raw("POST", f"/apis/{AUTHENTICATION}/v1/selfsubjectreviews", body, headers=headers)
    found = answer.json["status"]["userInfo"]
    assert found["username"] == "jane"
    assert sorted(found["groups"]) == ["developers", "system:authenticated", "testers"]
    refused = await raw("GET", SECRETS.in_namespace(namespace).path, headers=headers)
    assert refused.status == 403
    assert 'User "jane" cannot list resource "secrets"' in refused.message


async def test_others_may_not_be_someone_else(as_robot: Raw) -> None:
    answer = await as_robot("GET", "/version", headers=(("Impersonate-User", "jane"),))
    assert (answer.status, answer.reason) == (403, "Forbidden")
    assert 'users "jane" is forbidden' in answer.message
    assert 'cannot impersonate resource "users" in API group "" at the cluster scope' in answer.message
