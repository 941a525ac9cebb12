"""What leaves settings: typed values, the credentials that win, and no secret in a repr."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.kube.leaks import assert_hidden
from tests.settings.setting_files import ENVIRONMENT
from windlass.core.log_lines import Level
from windlass.errors import InvalidInput
from windlass.settings.settings import RootSource
from windlass.settings.source import SettingsSource

if TYPE_CHECKING:
    from tests.settings.setting_files import World

SECRET = "hunter2"
KUBECONFIG = f"""
current-context: c
contexts: [{{name: c, context: {{cluster: c, user: u}}}}]
clusters: [{{name: c, cluster: {{server: "https://kube.test"}}}}]
users: [{{name: u, user: {{token: {SECRET}}}}}]
"""
DATA = base64.b64encode(KUBECONFIG.encode()).decode()


def test_no_secret_in_a_repr() -> None:
    environ = {"KUBECONFIG_DATA": DATA, "SOME_TOKEN": SECRET}
    settings = SettingsSource(environ).settings({})
    connection = settings.cluster.credentials.load_connection()
    assert connection.environ == environ
    assert connection.redactor is settings.cluster.credentials.redactor
    for value in (settings, connection):
        assert_hidden(value, SECRET, DATA.encode())


@pytest.mark.parametrize(
    ("options", "environ", "where"),
    [
        ({}, {"KUBECONFIG_DATA": DATA}, "KUBECONFIG_DATA"),
        ({"kubeconfig": "file"}, {"KUBECONFIG_DATA": DATA, "KUBECONFIG_PATH": "other"}, "file"),
        ({}, {"KUBECONFIG_PATH": "file"}, "file"),
        ({"in_cluster": True}, {"KUBECONFIG_DATA": DATA, "KUBECONFIG_PATH": "other"}, "in-cluster service account"),
    ],
)
def test_the_credentials_that_win(
    options: dict[str, Any], environ: dict[str, str], where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_text(KUBECONFIG)
    credentials = SettingsSource(environ).cluster_settings(options).credentials
    if credentials.in_cluster:
        with pytest.raises(InvalidInput, match="not inside a cluster") as raised:
            credentials.load_connection()
        assert raised.value.where == where
    else:
        assert credentials.load_connection().where == where


def test_telemetry_and_terminal_are_typed() -> None:
    trace, span = "a" * 32, "b" * 16
    environ = {"TERM": "xterm", "NO_COLOR": "1", "SOME_TOKEN": SECRET, "TRACEPARENT": f"00-{trace}-{span}-01"}
    options = {"log_level": "warn", "metrics_port": "9090", "metrics_file": "/m/windlass.prom", "span_id": "c" * 16}
    settings = SettingsSource(environ).cluster_settings(options)
    assert settings.terminal.variables == {"TERM": "xterm", "NO_COLOR": "1"}
    assert not settings.terminal.is_dumb
    telemetry = settings.telemetry
    assert (telemetry.log_level, telemetry.log_format, telemetry.is_log_configured) == (Level.WARN, "json", True)
    assert (telemetry.trace_id, telemetry.span_id) == (trace, "c" * 16)
    assert (telemetry.metrics_port, telemetry.metrics_file) == (9090, Path("/m/windlass.prom"))
    assert settings.given_options == {
        "log-level": "warn", "metrics-port": "9090", "metrics-file": "/m/windlass.prom", "span-id": "c" * 16,
    }  # fmt: skip


def test_the_environment_file_names_environment_and_root(world: World) -> None:
    world.file("environment-file", ENVIRONMENT.replace("staging", "staging-eu") + "clusterName: eu\n")
    settings = world.load("", {"ENVIRONMENT": "staging"})
    assert (settings.environment_name, settings.cluster.environment) == ("staging-eu", "staging")
    assert settings.root == RootSource(
        "https://git.example.org/platform.git",
        "main",
        ".",
        {"environment": "staging-eu", "domain": "example.org", "clusterName": "eu"},
    )
