"""Option before variable before file before default; every text checked; secrets never in plain variables."""

from __future__ import annotations

import base64
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.settings.setting_files import ENVIRONMENT
from windlass.core.platform.model.scopes import Scope, ScopeKind
from windlass.settings.mounts import SECRET_FILES
from windlass.settings.source import SettingsSource
from windlass.settings.variables import PLAINTEXT_CREDENTIALS, SETTINGS, read_settings

if TYPE_CHECKING:
    from tests.settings.setting_files import World
    from windlass.settings.settings import Settings

KUBECONFIG = base64.b64encode(b"kind: Config").decode()
ACCESS = {"KUBECONFIG_DATA": KUBECONFIG, "ENVIRONMENT": "staging"}


def origin(settings: Settings, name: str) -> str:
    return next(each.origin for each in settings.effective_values if each.name == name)


def test_where_a_value_comes_from(world: World) -> None:
    def timeout() -> tuple[object, str]:
        settings = world.load()
        return settings.cluster.timeout, origin(settings, "timeout").replace(f"{world.directory}/", "")

    assert timeout() == (timedelta(hours=2), "default")
    world.file("environment-file", ENVIRONMENT + "timeouts:\n  overall: 3h\n")
    assert timeout() == (timedelta(hours=3), "environment.yaml:6:3")
    world.environ["ACTION_TIMEOUT"] = "4h"
    assert timeout() == (timedelta(hours=4), "ACTION_TIMEOUT")
    world.options["timeout"] = "5h"
    assert timeout() == (timedelta(hours=5), "--timeout")


def test_an_empty_variable_was_not_given(world: World) -> None:
    assert origin(world.load("", {"LOG_LEVEL": "", "PV_POLICY": "", "ACTION_TIMEOUT": ""}), "log-level") == "default"


@pytest.mark.parametrize("variable", ["TARGET_SCOPE", "DRY_RUN"])
def test_an_empty_variable_never_widens_a_run(world: World, variable: str) -> None:
    assert world.mistakes("", {variable: ""}) == [f"{variable}: must not be empty (leave it out to use the default)"]
    world.options = {**world.options, "scope": "platform", "dry-run": "true"}
    assert world.load("", {variable: ""}).is_dry_run


def test_every_variable_of_the_contract_is_read() -> None:
    assert {setting.variable for setting in SETTINGS if setting.variable} == {
        "KUBECONFIG_DATA", "KUBECONFIG_PATH", "ENVIRONMENT", "TARGET_SCOPE", "DRY_RUN", "LOG_LEVEL", "LOG_FORMAT",
        "ACTION_TIMEOUT", "PV_POLICY", "TEARDOWN_CONFIRM", "TRACE_ID", "SPAN_ID", "TRACEPARENT",
        "METRICS_PORT", "METRICS_ADDRESS", "METRICS_FILE", "PUSHGATEWAY_URL", "LOCK_TIMEOUT", "PIPELINE_URL",
        "ARGOCD_AUTH_TOKEN_PATH",
    }  # fmt: skip
    assert all(setting.option for setting in SETTINGS if not setting.is_secret), "each but a secret has an option"


@pytest.mark.parametrize(
    ("variable", "text", "value"),
    [
        ("KUBECONFIG_PATH", "/k", "/k"),
        ("KUBECONFIG_DATA", "aGk=\n", b"hi"),
        ("ENVIRONMENT", "development", "development"),
        ("TARGET_SCOPE", "stack:storage", Scope(ScopeKind.STACK, "storage")),
        ("DRY_RUN", "true", True),
        ("DRY_RUN", "false", False),
        ("LOG_LEVEL", "warn", "warn"),
        ("LOG_FORMAT", "text", "text"),
        ("PV_POLICY", "snapshot", "snapshot"),
        ("METRICS_PORT", "9090", 9090),
        ("METRICS_ADDRESS", "0.0.0.0", "0.0.0.0"),
        ("METRICS_FILE", "/m/windlass.prom", "/m/windlass.prom"),
        ("PUSHGATEWAY_URL", "https://push.example:9091/base", "https://push.example:9091/base"),
        ("PUSHGATEWAY_URL", "http://[::1]", "http://[::1]"),
        ("PIPELINE_URL", "https://ci.example/runs/7?attempt=2", "https://ci.example/runs/7?attempt=2"),
        ("LOCK_TIMEOUT", "10m", timedelta(minutes=10)),
        ("TRACE_ID", "a" * 32, "a" * 32),
        ("SPAN_ID", "b" * 16, "b" * 16),
        ("TRACEPARENT", f"00-{'a' * 32}-{'b' * 16}-01", f"00-{'a' * 32}-{'b' * 16}-01"),
    ],
)
def test_a_variable_that_is_right(world: World, variable: str, text: str, value: object) -> None:
    found, mistakes = read_settings(world.options, {variable: text}, {})
    assert not mistakes
    assert [each.value for each in found.values() if each.origin == variable] == [value]


@pytest.mark.parametrize(
    ("variable", "text", "message"),
    [
        ("ENVIRONMENT", "prod", "must be development, staging or production"),
        ("TARGET_SCOPE", "storage", "'storage' is not a scope (it is platform, stack:NAME or app:NAME)"),
        ("TARGET_SCOPE", "app:valut", "there is no application valut (did you mean vault?)"),
        ("DRY_RUN", "yes", "must be true or false, nothing else"),
        ("DRY_RUN", "True", "must be true or false, nothing else"),
        ("LOG_LEVEL", "warning", "must be debug, info, warn or error"),
        ("LOG_FORMAT", "yaml", "must be text or json"),
        *[
            (
                "KUBECONFIG_DATA",
                text,
                "must be a kubeconfig in base64, never in plain text: base64 -w0 < kubeconfig",
            )
            for text in ("apiVersion: v1", "clé")
        ],
        ("ACTION_TIMEOUT", "120", "must be a duration like 90s, 10m or 1h30m"),
        ("PV_POLICY", "keep", "must be retain, delete or snapshot"),
        *[("METRICS_PORT", text, "must be a port from 1 to 65535") for text in ("0", "65536", "-1", "9 ", "٣", "http")],
        *[
            ("PUSHGATEWAY_URL", text, "must be the URL of a Pushgateway: http://host:9091")
            for text in (
                "push:9091",
                "ftp://push",
                "http://",
                "http://push:x",
                "http://push?a",
                "http://pu sh",
                "http://[",
            )
        ],
        (
            "PUSHGATEWAY_URL",
            "http://me:hunter2@push",
            "a credential in plain text is refused (mount it as /secrets/pushgateway-auth, user:password)",
        ),
        *[
            ("PIPELINE_URL", text, "must be an http or https URL of at most 200 characters, without a password")
            for text in (
                "ci/7",
                "ftp://ci",
                "https://me:hunter2@ci",
                "https://ci/a b",
                "http://[",
                "https://" + "c" * 200,
            )
        ],
        ("LOCK_TIMEOUT", "10", "must be a duration like 90s, 10m or 1h30m"),
        ("TRACE_ID", "0" * 32, "must be 32 hexadecimal digits, not all zero"),
        ("SPAN_ID", "xyz", "must be 16 hexadecimal digits, not all zero"),
        ("TRACEPARENT", "00-a-b-01", "must be a W3C trace context: 00-TRACE-SPAN-01"),
        (
            "KUBECONFIG_DATA",
            "apiVersion: v1",
            "must be a kubeconfig in base64, never in plain text: base64 -w0 < kubeconfig",
        ),
    ],
)
def test_a_variable_that_is_wrong(world: World, variable: str, text: str, message: str) -> None:
    assert world.mistakes("", {variable: text}) == [f"{variable}: {message}"]


@pytest.mark.parametrize("variable", sorted(PLAINTEXT_CREDENTIALS))
def test_a_credential_in_a_plain_variable_is_refused_and_not_shown(world: World, variable: str) -> None:
    [mistake] = world.mistakes("", {variable: "hunter2"})
    assert mistake.startswith(f"{variable}: a credential in plain text is refused (mount it as /secrets/")
    assert "hunter2" not in mistake


def test_on_a_terminal_logs_are_text() -> None:
    def log_format(environ: dict[str, str], *, is_terminal: bool) -> str:
        return SettingsSource(environ, is_terminal=is_terminal).settings({}).cluster.telemetry.log_format

    assert log_format({}, is_terminal=True) == "text"
    assert log_format({"LOG_FORMAT": "json"}, is_terminal=True) == "json"
    assert log_format({}, is_terminal=False) == "json"


NONE = "no cluster is named: give --kubeconfig FILE, KUBECONFIG_PATH, KUBECONFIG_DATA or --in-cluster"
SEVERAL = "give only one of --kubeconfig (KUBECONFIG_PATH), KUBECONFIG_DATA and --in-cluster"
OVERRIDE = "--kubeconfig FILE overrides the variables"


@pytest.mark.parametrize(
    ("options", "environ", "message"),
    [
        ({}, {}, NONE),
        ({}, {"KUBECONFIG": "/k"}, f'{NONE} (KUBECONFIG is set but not read; use --kubeconfig "$KUBECONFIG")'),
        ({}, {"KUBECONFIG_PATH": "/k"}, None),
        ({}, {"KUBECONFIG_DATA": KUBECONFIG}, None),
        (
            {},
            {"KUBECONFIG_PATH": "/k", "KUBECONFIG_DATA": KUBECONFIG},
            f"{SEVERAL} (given: KUBECONFIG_PATH, KUBECONFIG_DATA; {OVERRIDE})",
        ),
        ({"kubeconfig": "/k"}, {"KUBECONFIG_DATA": KUBECONFIG}, None),
        ({"in-cluster": "true"}, {}, None),
        ({"in-cluster": "true", "kubeconfig": "/k"}, {}, f"{SEVERAL} (given: --kubeconfig, --in-cluster; {OVERRIDE})"),
    ],
)
def test_exactly_one_way_to_the_cluster(
    world: World, options: dict[str, str], environ: dict[str, str], message: str | None
) -> None:
    world.options |= options
    environ = {**environ, "ENVIRONMENT": "staging"}
    if message is None:
        world.load("validate", environ)
    else:
        assert world.mistakes("validate", environ) == [message]


def test_an_action_needs_an_environment(world: World) -> None:
    [mistake] = world.mistakes("validate", {"KUBECONFIG_DATA": KUBECONFIG})
    assert mistake == "the target environment is missing (--environment or ENVIRONMENT)"


def test_only_deploy_needs_the_environment_file(world: World) -> None:
    world.load("validate", ACCESS)
    assert world.mistakes("deploy", ACCESS) == [
        "/config/environment.yaml is missing (mount it, or name it by --environment-file)"
    ]
    world.file("environment-file", ENVIRONMENT)
    world.load("deploy", ACCESS)


@pytest.mark.parametrize(
    ("name", "is_right"), [("staging", True), ("staging-eu", True), ("stagingeu", False), ("production", False)]
)
def test_the_file_of_another_environment_is_refused(world: World, name: str, is_right: bool) -> None:
    world.file("environment-file", ENVIRONMENT.replace("staging", name))
    if is_right:
        world.load("deploy", ACCESS)
    else:
        assert world.mistakes("deploy", ACCESS) == [
            (
                f"environment.yaml:1:1: this is the file of {name}, but ENVIRONMENT is staging "
                "(name must be staging, or begin with staging-)"
            )
        ]


@pytest.mark.parametrize(
    ("file_name", "given", "message"),
    [
        (
            None,
            None,
            "the teardown of staging is not confirmed (add --confirm staging, or set TEARDOWN_CONFIRM=staging)",
        ),
        (None, "staging", None),
        (None, "production", "TEARDOWN_CONFIRM: the confirmation names another environment (it must be staging)"),
        ("staging-eu", "staging-eu", None),
        (
            "staging-eu",
            "staging",
            "TEARDOWN_CONFIRM: the confirmation names another environment (it must be staging-eu)",
        ),
    ],
)
def test_a_teardown_is_confirmed_by_name(
    world: World, file_name: str | None, given: str | None, message: str | None
) -> None:
    if file_name:
        world.file("environment-file", ENVIRONMENT.replace("staging", file_name))
    environ = {**ACCESS, **({"TEARDOWN_CONFIRM": given} if given else {})}
    if message is None:
        world.load("teardown", environ)
    else:
        assert world.mistakes("teardown", environ) == [message]
    world.load("teardown", {**ACCESS, "DRY_RUN": "true"})


def test_all_mistakes_of_all_sources_come_together(world: World) -> None:
    world.file("environment-file", "name: staging\n")
    world.file("dag", "kind: x\n")
    found = world.mistakes(
        "teardown", {"GIT_TOKEN": "x", "LOG_LEVEL": "loud", "ENVIRONMENT": "qa", "KUBECONFIG_DATA": "%"}
    )
    assert [mistake.partition(":")[0] for mistake in found] == [
        "GIT_TOKEN", "KUBECONFIG_DATA", "ENVIRONMENT", "LOG_LEVEL", "environment.yaml", "environment.yaml",
        "environment.yaml", "dag.yaml", "dag.yaml", "dag.yaml", "dag.yaml",
        "the teardown of an environment is not confirmed (add --confirm NAME, or set TEARDOWN_CONFIRM=NAME)",
    ]  # fmt: skip


def test_credential_files_are_known_by_name_and_others_are_noticed(world: World) -> None:
    for name in ("git-username", "git-password", "argocd-token", "notes.txt", "..data"):
        world.mount(f"secrets/{name}")
    found = world.load().cluster.mounts
    assert set(found.secrets) == {"git-username", "git-password", "argocd-token"}
    assert [notice.replace(f"{world.directory}/", "") for notice in found.notices] == [
        f"secrets/notes.txt is ignored: known are {', '.join(SECRET_FILES)}"
    ]


def test_a_credential_that_is_no_file_is_refused(world: World) -> None:
    (world.directory / "secrets" / "git-password").mkdir(parents=True)
    assert world.mistakes() == ["secrets/git-password: the file cannot be read: Is a directory (mount it as a file)"]


def test_health_checks_are_named_by_what_they_judge(world: World) -> None:
    kinds = {("ceph.rook.io", "CephCluster"), ("", "Pod"), ("acid.zalan.do", "postgresql")}
    for group, kind in kinds:
        world.mount(f"health/{group}_{kind}.lua", f"return {{message='{kind}'}}")
    mounts = world.load().cluster.mounts
    assert set(mounts.health_checks) == set(mounts.health_scripts) == kinds
    assert mounts.health_scripts["", "Pod"] == "return {message='Pod'}"
    world.mount("health/vault.lua")
    assert world.mistakes() == [
        "health/vault.lua: is not named <group>_<Kind>.lua (for example ceph.rook.io_CephCluster.lua)"
    ]


def test_a_health_check_must_be_lua(world: World) -> None:
    world.mount("health/a_Thing.lua", "local x = 1\n\nif x then\n")
    world.mount("health/b_Thing.lua", "\x1bLua")
    world.mount("health/c_Thing.lua", "while true do end")  # it is read, not run
    (world.directory / "health/d_Thing.lua").write_bytes(b"\xff")
    (world.directory / "health/e_Thing.lua").mkdir()
    world.mount("health/f_Thing.lua", " " * 300_000)
    assert world.mistakes() == [
        "health/a_Thing.lua:4: this is no Lua: 'end' expected (to close 'if' at line 3) near <eof>",
        "health/b_Thing.lua:1: this is no Lua: attempt to load a binary chunk (mode is 't')",
        "health/d_Thing.lua: this is no text in UTF-8",
        "health/e_Thing.lua: the file cannot be read: Is a directory",
        "health/f_Thing.lua: is larger than 256 KiB (a health check is a page or two)",
    ]


def test_the_page_lists_every_option_and_variable() -> None:
    page = (Path(__file__).parents[2] / "docs/platform-file.md").read_text()
    for setting in SETTINGS:
        assert f"| {f'`{setting.option}`' if setting.option else ''}".rstrip() in page
        assert not setting.variable or f"| `{setting.variable}` |" in page


def test_l1_a_time_limit_of_nothing_is_refused(world: World) -> None:
    assert world.mistakes(environ={"ACTION_TIMEOUT": "0s"}) == ["ACTION_TIMEOUT: must be longer than 0s"]
