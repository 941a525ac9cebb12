"""Plans as files: what is written is read again, and whatever else is in one is refused with its place."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import NEW, platform, snapshot
from windlass.cli.plan_files import parse_plan
from windlass.core.platform.model.scopes import parse_scope
from windlass.core.platform.model.snapshots import ParentApplication
from windlass.core.platform.planning import plans
from windlass.core.platform.planning.approvals import summarize_plan
from windlass.core.platform.planning.plan_documents import plan_document
from windlass.errors import InvalidInput

ABOUT = {
    "action": "deploy",
    "environment": "staging",
    "scope": "platform",
    "platform": "test 0123",
    "version": "1",
    "volumePolicy": "",
}
BEFORE = replace(
    snapshot("ceph=healthy postgres=progressing"),
    parents=dict.fromkeys(("keycloak", "vault"), ParentApplication("argocd", "root", (NEW,))),
)
PLAN = plans.plan_deploy(
    platform("keycloak: postgres vault; postgres: ceph; vault: ceph"), BEFORE, parse_scope("platform")
)
SUMMARY = replace(
    summarize_plan(PLAN, BEFORE),
    root="a root",
    root_revision=NEW,
    parents=("Application a/b",),
    cluster="uid 1",
    delete_foreign=("vault",),
)
WRITTEN = json.dumps(plan_document(PLAN, ABOUT, SUMMARY))


def changed(*path: str | int, to: Any) -> str:
    content = json.loads(WRITTEN)
    place = content
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = to
    return json.dumps(content)


def without(name: str) -> str:
    return json.dumps({key: value for key, value in json.loads(WRITTEN).items() if key != name})


def refusal(content: bytes) -> InvalidInput | None:
    """Nothing else is raised."""
    try:
        parse_plan(content, ABOUT, "plan.json")
    except InvalidInput as error:
        return error
    return None


def test_what_is_written_is_read_again() -> None:
    assert parse_plan(WRITTEN.encode(), ABOUT, "plan.json") == SUMMARY


@pytest.mark.parametrize(
    ("content", "place", "what"),
    [
        ("", "$", "Input data was truncated"),
        ("{", "$", "Input data was truncated"),
        ("nonsense", "$", "JSON is malformed"),
        (b'{"kind": "\xff"}', "$", "invalid start byte"),
        ("[" * 100_000, "$", "Expected `object`, got `array`"),
        ("[]", "$", "Expected `object`, got `array`"),
        (without("steps"), "$", "missing required field `steps`"),
        (changed("kind", to="Platform"), "$.kind", "Invalid enum value 'Platform'"),
        (changed("apiVersion", to="v2"), "$.apiVersion", "Invalid enum value 'v2'"),
        (changed("scope", to="app:ceph"), "$.scope", "this plan is for scope 'app:ceph', not 'platform'"),
        (changed("action", to="teardown"), "$.action", "this plan is for action 'teardown', not 'deploy'"),
        (changed("environment", to="production"), "$.environment", "for environment 'production', not 'staging'"),
        (changed("platform", to="test 4567"), "$.platform", "for platform 'test 4567', not 'test 0123'"),
        (changed("version", to="2"), "$.version", "for version '2', not '1'"),
        (changed("volumePolicy", to="delete"), "$.volumePolicy", "for volumePolicy 'delete', not ''"),
        (changed("rootRevision", to=""), "$", "this plan cannot be approved: the root Application changes"),
        (changed("steps", 1, "revisions", to=[]), "$", "this plan cannot be approved: which revision vault would get"),
        (changed("parents", to=[1]), "$.parents[0]", "Expected `str`, got `int`"),
        (changed("environment", to=None), "$.environment", "Expected `str`, got `null`"),
        (changed("root", to=True), "$.root", "Expected `str`, got `bool`"),
        (changed("more", to=1), "$", "unknown field `more`"),
        (changed("two\nlines", to=1), "$", "unknown field `two lines`"),
        (changed("steps", to="abc"), "$.steps", "Expected `array`, got `str`"),
        (changed("steps", 0, to={}), "$.steps[0]", "missing required field `name`"),
        (changed("steps", 0, "revisions", to="abc"), "$.steps[0].revisions", "Expected `array`, got `str`"),
        (changed("steps", 0, "revisions", to=["a\nb"]), "$.steps[0].revisions[0]", "matching regex"),
        (changed("steps", 0, "verb", to="burn"), "$.steps[0].verb", "Invalid enum value 'burn'"),
        (changed("steps", 0, "name", to="A b"), "$.steps[0].name", "matching regex"),
        (changed("steps", 1, "name", to="postgres"), "$.steps[1].name", "postgres is listed twice"),
        (changed("steps", 0, "after", to=["keycloak"]), "$.steps[0].after[0]", "keycloak is no step before postgres"),
        (changed("unchanged", to=["ceph", "ceph"]), "$.unchanged[1]", "ceph is listed twice"),
        (changed("unchanged", to=["vault"]), "$.unchanged[0]", "vault is listed twice"),
    ],
    ids=lambda value: value[:60] if isinstance(value, str) and not value.startswith("{") else "",
)
def test_a_mistake_is_told_with_its_place(content: str | bytes, place: str, what: str) -> None:
    error = refusal(content if isinstance(content, bytes) else content.encode())
    assert error is not None
    assert what in error.what
    assert error.where == f"plan.json: {place}"
    assert error.hint == "make a new one: windlass plan --out FILE"


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["sync", "ceph", "vault"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=5,
)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A plan in which one value was replaced, removed or doubled; now and then one of which bytes were lost."""
    content = json.loads(WRITTEN)
    place: Any = content
    while True:
        key = draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        if isinstance(place[key], dict | list) and place[key] and draw(st.booleans()):
            place = place[key]
            continue
        change = draw(st.sampled_from(["replace", "remove", "double"]))
        if change == "replace":
            place[key] = draw(ANYTHING)
        elif change == "remove":
            del place[key]
        elif isinstance(place, list):
            place.append(place[key])
        else:
            place[draw(st.text(max_size=9))] = place[key]
        break
    text = json.dumps(content).encode()
    start = draw(st.none() | st.integers(0, len(text)))
    return text if start is None else text[:start] + text[start + draw(st.integers(1, 9)) :]


@given(mutated())
def test_whatever_is_in_it_is_a_plan_or_one_error(content: bytes) -> None:
    error = refusal(content)
    if error is not None:
        assert error.exit_code == 3
        assert error.where.startswith("plan.json: $")
        assert str(error).isprintable()
