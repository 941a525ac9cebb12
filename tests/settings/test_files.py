"""Both files: every mistake with its place and what was expected; what extends and overrides; who wins."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from tests.settings.setting_files import ENVIRONMENT, HEAD, spec
from windlass.core.platform.model.applications import ApplicationRef, Barrier, ResourceRef
from windlass.core.platform.model.scopes import Scope, selected_nodes

if TYPE_CHECKING:
    from tests.settings.setting_files import World
    from windlass.core.platform.model.applications import ApplicationNode

QUOTE = "(put it in quotes: bare, YAML reads it as something else)"
PATTERN = "'Big' is not a name: use lower-case letters, digits, '-' and '.' (try 'big')"
BOTH = "{name: x, application: z, resource: {apiVersion: v1, kind: K, name: k}}"
STORAGE = """\
stacks:
  - name: storage
    applications:
      - {name: operator, profile: operator}
      - {name: cluster, dependsOn: [operator], profile: storage-cluster, critical: true}
"""


def application(world: World, name: str) -> ApplicationNode:
    return world.load().platform.applications[name]


@pytest.mark.parametrize(
    ("text", "mistakes"),
    [
        ("", ["environment.yaml: the file is empty"]),
        ("- a\n", ["environment.yaml:1:1: must be a mapping"]),
        (
            "name: staging\n",
            [
                "environment.yaml:1:1: domain is missing",
                "environment.yaml:1:1: gitRepository is missing",
                "environment.yaml:1:1: gitRevision is missing",
            ],
        ),
        (
            ENVIRONMENT + "gitRevison: x\n",
            ["environment.yaml:5:1: unknown field gitRevison (did you mean gitRevision?)"],
        ),
        (
            ENVIRONMENT + "timeouts:\n  synk: 5m\n  health: 300\n",
            [
                "environment.yaml:6:3: unknown field timeouts.synk (did you mean sync?)",
                "environment.yaml:7:3: timeouts.health must be a duration like 90s, 10m or 1h30m",
            ],
        ),
        (
            ENVIRONMENT + "retries: {maxAttempts: 0, backoff: soon}\n",
            [
                "environment.yaml:5:11: retries.maxAttempts must be greater than or equal to 1",
                "environment.yaml:5:27: retries.backoff must be a duration like 90s, 10m or 1h30m",
            ],
        ),
        *(
            (
                re.sub("gitRepository: .*", f"gitRepository: '{address}'", ENVIRONMENT),
                [
                    (
                        "environment.yaml:3:1: gitRepository must not contain credentials: "
                        "mount them as /secrets/git-username and /secrets/git-password"
                    )
                ],
            )
            for address in (
                "https://bob:hunter2@git.example/x.git",
                "https://hunter2@git.example/x.git",
                "HTTPS://hunter2@git.example",
                "  https://bob:hunter2@git.example/x.git",
                "ssh://git:hunter2@git.example/x.git",
                "bob:hunter2@git.example:x.git",
                "https://git.example/x.git?private_token=hunter2",
                "https://git.example/x.git?ref=main&Access%54oken=hunter2",
                "ssh://git@git.example/x.git?sshkey=hunter2",
                "https://git.example/x.git#password=hunter2",
            )
        ),
        ("name: a\nname: b\n", ["environment.yaml:2:1: this key is given twice (first at 1:1)"]),
        ("name: [\n", ["environment.yaml:2:1: not valid YAML: did not find expected node content"]),
    ],
)
def test_mistakes_in_the_environment_file(world: World, text: str, mistakes: list[str]) -> None:
    world.file("environment-file", text)
    found = world.mistakes()
    assert found == mistakes
    assert "hunter2" not in str(found)


@pytest.mark.parametrize(
    "address",
    [
        "https://git.example/team/x.git?ref=main",
        "ssh://git@git.example:22/x.git",
        "git@git.example:keys/tokens.git",
        "https://git.example/a@b:c/x.git",
    ],
)
def test_an_address_without_credentials(world: World, address: str) -> None:
    world.file("environment-file", re.sub("gitRepository: .*", f"gitRepository: '{address}'", ENVIRONMENT))
    root = world.load().root
    assert root is not None
    assert root.repository == address


def test_what_the_environment_file_may_say(world: World) -> None:
    world.file(
        "environment-file",
        ENVIRONMENT + "clusterName: c\nargocdNamespace: cd\nworkflowsNamespace: wf\ngitPath: root\n"
        "timeouts: {sync: 6m, health: 7m, overall: 1h}\nretries: {maxAttempts: 5, backoff: 1s}\n",
    )
    settings = world.load()
    assert settings.root is not None
    values = {each.name: each.value for each in settings.effective_values}
    assert (settings.argocd_namespace, settings.root.path) == ("cd", "root")
    assert values["environment.workflowsNamespace"] == "wf"
    assert settings.cluster.timeout == timedelta(hours=1)


@pytest.mark.parametrize(
    ("text", "mistakes"),
    [
        (
            spec("stacks: [{name: y, applications: [{name: 1.2}]}]"),
            [
                f"dag.yaml:5:13: spec.stacks.0.name must be a text {QUOTE}",
                f"dag.yaml:5:38: spec.stacks.0.applications.0.name must be a text {QUOTE}",
            ],
        ),
        ("a: b\n", ["dag.yaml:1:1: apiVersion is missing", "dag.yaml:1:1: kind is missing"]),
        (HEAD.replace("Platform", "Plattform") + "  stacks: []\n", ["dag.yaml:2:1: kind must be 'Platform'"]),
        (spec("extends: default"), ["dag.yaml:5:3: spec.extends must be 'reference'"]),
        (
            spec("execution: {maxParalel: 3}"),
            ["dag.yaml:5:15: unknown field spec.execution.maxParalel (did you mean maxParallel?)"],
        ),
        (
            spec("profiles: {operator: {helth: 5m}}"),
            ["dag.yaml:5:25: unknown field spec.profiles.operator.helth (did you mean health?)"],
        ),
        (
            spec("stacks: [{name: a, applications: [{name: Big}]}]"),
            [f"dag.yaml:5:38: spec.stacks.0.applications.0.name {PATTERN}"],
        ),
        (
            spec("stacks: [{name: a, applications: [{name: x, dependson: [y]}]}]"),
            ["dag.yaml:5:47: unknown field spec.stacks.0.applications.0.dependson (did you mean dependsOn?)"],
        ),
        (
            spec(f"stacks: [{{name: a, applications: [{BOTH}]}}]"),
            ["dag.yaml:5:37: spec.stacks.0.applications.0 must be an application or a resource, not both"],
        ),
    ],
)  # fmt: skip
def test_mistakes_of_shape_in_the_platform_file(world: World, text: str, mistakes: list[str]) -> None:
    world.file("dag", text)
    assert [mistake for mistake in world.mistakes() if "metadata is" not in mistake and "spec is" not in mistake][
        : len(mistakes)
    ] == mistakes


@pytest.mark.parametrize(
    ("text", "mistakes"),
    [
        (
            "stacks:\n- name: a\n  applications:\n  - {name: x, dependsOn: [z]}\n  - {name: z, dependsOn: [x]}\n",
            ["8:29: dependencies go round in a circle: x -> z -> x (remove one of these dependencies)"],
        ),
        (
            "stacks:\n- name: a\n  applications:\n  - {name: vault, dependsOn: [valut, vualt]}\n  - {name: other}\n",
            [
                "8:33: vault depends on valut, which does not exist (possible: other)",
                "8:40: vault depends on vualt, which does not exist (possible: other)",
            ],
        ),
        (
            "stacks:\n- name: a\n  applications:\n  - {name: x}\n  - {name: x}\n- {name: a}\n",
            [
                "9:8: application x is defined twice (first at dag.yaml:8:8)",
                "10:6: stack a is defined twice (first at dag.yaml:6:5)",
            ],
        ),
        (
            "stacks:\n- {name: a, dependsOn: [b]}\n- {name: b, dependsOn: [a]}\n",
            ["6:27: stack dependencies go round in a circle: a -> b -> a (remove one of these dependencies)"],
        ),
        (
            "stacks:\n- {name: storage, dependsOn: [infra]}\n- {name: infrastructure}\n",
            ["6:33: stack storage depends on infra, which does not exist (possible: infrastructure)"],
        ),
        (
            (
                "stacks:\n- {name: a, dependsOn: [b], applications: [{name: x}]}\n"
                "- {name: b, applications: [{name: z, dependsOn: [x]}]}\n"
            ),
            ["6:6: dependencies go round in a circle: x -> z -> x (remove one of these dependencies)"],
        ),
        (
            "stacks:\n- {name: a, applications: [{name: x, profile: oprator}]}\n",
            ["6:31: x has a profile that does not exist: oprator (did you mean operator?)"],
        ),
        (
            "stacks:\n- {name: a, applications: [{name: x, application: ns/y}, {name: z, application: ns/y}]}\n",
            ["6:61: x and z both stand for Application ns/y (an Application can be one node only)"],
        ),
        ("stacks: []\n", ["4:1: this platform has no application (list them under spec.stacks)"]),
        (
            "stacks:\n- {name: a, applications: []}\n",
            ["4:1: this platform has no application (list them under spec.stacks)"],
        ),
        (
            "extends: reference\nonly: {}\n",
            ["6:3: `only` selects no application (name stacks or applications in it)"],
        ),
        (
            "only: {stacks: [b], applications: [z]}\nstacks:\n- {name: a, applications: [{name: x}]}\n",
            ["5:19: there is no stack b (possible: a)", "5:38: there is no application z (possible: x)"],
        ),
        (
            "extends: reference\nstacks:\n- {name: storage, applications: [{name: vault}]}\n",
            [
                (
                    "7:37: vault is in stack security, not in storage "
                    "(change it there, or write a file that does not extend)"
                )
            ],
        ),
    ],
)
def test_mistakes_of_meaning_in_the_platform_file(world: World, text: str, mistakes: list[str]) -> None:
    world.file("dag", spec(text))
    assert world.mistakes() == [f"dag.yaml:{mistake}" for mistake in mistakes]


def test_a_circle_with_the_reference_names_the_line_that_closes_it(world: World) -> None:
    """The matrix behind the reference and its picture disagree on this very edge."""
    stack = "{name: infrastructure, applications: [{name: ingress-nginx, dependsOn: [rook-ceph-cluster]}]}"
    world.file("dag", spec(f"extends: reference\nstacks:\n- {stack}\n"))
    [mistake] = world.mistakes()
    assert (
        "dag.yaml:7:77: dependencies go round in a circle: ingress-nginx -> rook-ceph-cluster -> ingress-nginx"
        in mistake
    )


def test_a_file_replaces_the_reference(world: World) -> None:
    world.file("dag", spec(STORAGE + "execution: {maxParallel: 3, barrier: wave}\n"))
    platform = world.load().platform
    assert (platform.name, platform.max_parallel, platform.barrier) == ("mine", 3, Barrier.WAVE)
    assert platform.graph.dependencies == {"cluster": ("operator",), "operator": ()}
    assert [application.critical for application in platform.applications.values()] == [True, False]


def test_a_stack_waits_for_every_application_of_another(world: World) -> None:
    world.file("dag", spec(STORAGE + "  - {name: apps, dependsOn: [storage], applications: [{name: a}, {name: b}]}\n"))
    needs = world.load().platform.graph.dependencies
    assert needs["a"] == needs["b"] == ("cluster", "operator")


def test_extending_adds_and_overrides_by_name(world: World) -> None:
    world.file(
        "dag",
        spec(
            """\
            extends: reference
            stacks:
              - name: security
                applications:
                  - {name: vault, dependsOn: [], timeouts: {sync: 20m}, retries: {maxAttempts: 1}, critical: false}
                  - {name: falco, dependsOn: [vault], application: sec/falco-app}
              - name: storage
                applications:
                  - name: ceph-ready
                    dependsOn: [rook-ceph-cluster]
                    resource: {apiVersion: ceph.rook.io/v1, kind: CephCluster, namespace: rook, name: main}
              - name: extra
                dependsOn: [security]
                applications: [{name: more}]
            """
        ),
    )
    platform = world.load().platform
    vault = platform.applications["vault"]
    assert platform.graph.dependencies["vault"] == ()
    assert (vault.timing.sync, vault.timing.health) == (timedelta(minutes=20), timedelta(minutes=15))
    assert (vault.retries.max_attempts, vault.critical, vault.profile) == (1, False, "vault")
    assert platform.applications["falco"].target == ApplicationRef("falco-app", "sec")
    assert platform.applications["ceph-ready"].target == ResourceRef("ceph.rook.io/v1", "CephCluster", "main", "rook")
    assert platform.graph.dependencies["more"] == ("crossplane", "external-secrets", "falco", "keycloak", "vault")
    assert (len(platform.applications), len(platform.stacks)) == (46, 12)


def test_a_subset_is_known_as_a_whole_and_touched_in_part(world: World) -> None:
    world.file("dag", spec("extends: reference\nonly: {stacks: [storage], applications: [vault]}\n"))
    platform = world.load().platform
    assert len(platform.applications) == 43
    assert selected_nodes(platform, Scope()) == {
        "rook-ceph", "rook-ceph-cluster", "zalando-pg", "postgres-operator-config", "redis-operator", "vault",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("node", "profiles", "environment", "minutes"),
    [
        ("timeouts: {sync: 1m}", "{operator: {sync: 2m}}", "timeouts: {sync: 3m}", 1),
        ("", "{operator: {sync: 2m}}", "timeouts: {sync: 3m}", 2),
        ("", "{operator: {health: 2m}}", "timeouts: {sync: 3m}", 3),
        ("", "{}", "", 10),
    ],
    ids=["node", "profile of the file", "environment file", "embedded profile"],
)
def test_who_sets_a_timeout(world: World, node: str, profiles: str, environment: str, minutes: int) -> None:
    stack = f"stacks: [{{name: a, applications: [{{name: x, profile: operator, {node}}}]}}]"
    world.file("dag", spec(f"profiles: {profiles}\n{stack}"))
    world.file("environment-file", ENVIRONMENT + environment)
    assert application(world, "x").timing.sync == timedelta(minutes=minutes)


def test_a_profile_of_ones_own_falls_back_to_the_simple_one(world: World) -> None:
    world.file(
        "dag", spec("profiles: {mine: {stability: 9s}}\nstacks: [{name: a, applications: [{name: x, profile: mine}]}]")
    )
    patience = application(world, "x").timing
    assert (patience.stability, patience.sync) == (timedelta(seconds=9), timedelta(minutes=5))


def test_retries_come_from_the_node_then_the_environment(world: World) -> None:
    world.file("dag", spec("stacks: [{name: a, applications: [{name: x, retries: {backoff: 1s}}]}]"))
    world.file("environment-file", ENVIRONMENT + "retries: {maxAttempts: 7, backoff: 2s}")
    retries = application(world, "x").retries
    assert (retries.max_attempts, retries.backoff) == (7, timedelta(seconds=1))


def test_null_means_not_given(world: World) -> None:
    world.file(
        "dag", spec("extends: reference\nstacks: [{name: security, applications: [{name: vault, dependsOn: }]}]")
    )
    assert world.load().platform.graph.dependencies["vault"] == (
        "cert-manager",
        "ingress-nginx",
        "rook-ceph-cluster",
    )


def test_values_behind_aliases_have_the_place_of_what_they_came_into(world: World) -> None:
    world.file("dag", spec("profiles:\n  a: &a {sync: 1m}\n  b:\n    <<: *a\n    x: 1\nstacks: []\n"))
    assert world.mistakes() == [
        "dag.yaml:9:7: unknown field spec.profiles.b.x (possible: degradedGrace, expected, health, stability, sync)"
    ]


def test_a_file_that_somebody_named_must_be_there(world: World) -> None:
    world.options["dag"] = str(world.directory / "none.yaml")
    assert world.mistakes() == ["--dag: there is no file none.yaml"]
    world.options["dag"] = str(world.directory)
    assert "the file cannot be read: Is a directory" in world.mistakes()[0]


def test_a_broken_platform_file_is_not_searched_for_the_scope(world: World) -> None:
    world.file("dag", spec("stack: []"))
    world.options["scope"] = "app:x"
    assert world.mistakes() == ["dag.yaml:5:3: unknown field spec.stack (did you mean stacks?)"]


def test_who_says_itself_what_it_waits_for(world: World) -> None:
    world.file(
        "dag",
        spec(
            """\
            stacks:
            - name: base
              applications: [{name: a}, {name: b, dependsOn: [a]}, {name: c, dependsOn: []}, {name: d, dependsOn: null}]
            - {name: top, dependsOn: [base], applications: [{name: e}]}
            """
        ),
    )
    found = world.load().definition
    assert found.explicit_dependencies == {"b", "c"}, "what a whole stack waits for is not what its applications say"
    world.file("dag", spec("extends: reference\nstacks:\n- {name: security, applications: [{name: falco}]}\n"))
    extended = world.load().definition
    assert "falco" not in extended.explicit_dependencies
    assert "vault" in extended.explicit_dependencies
