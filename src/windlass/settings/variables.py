"""The table of settings: option, environment variable, default and parser of each.

`--help` loads this module, so it must not import anything slow.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from windlass.core.platform.model.scopes import SCOPE_FORMS, parse_scope
from windlass.errors import InvalidInput
from windlass.settings.durations import parse_duration, parse_time_limit
from windlass.settings.problems import SettingsProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

ENVIRONMENTS = ("development", "staging", "production")
PLAINTEXT_CREDENTIALS: Mapping[str, str] = {
    "GIT_PASSWORD": "/secrets/git-password",
    "GIT_TOKEN": "/secrets/git-password",
    "GIT_SSH_KEY": "/secrets/git-ssh-key",
    "REGISTRY_JSON": "/secrets/registry.json",
    "REGISTRY_PASSWORD": "/secrets/registry.json",
    "ARGOCD_TOKEN": "/secrets/argocd-token",
    "ARGOCD_PASSWORD": "/secrets/argocd-token",
}
"""Variables that would hold a secret in plain text, and the file to mount instead."""


def _choice_parser(*choices: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in choices:
            raise ValueError(f"must be {', '.join(choices[:-1])} or {choices[-1]}")
        return text

    return parse


def _parse_boolean(text: str) -> bool:
    if text not in {"true", "false"}:
        raise ValueError("must be true or false, nothing else")
    return text == "true"


def _parse_base64(text: str) -> bytes:
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except ValueError:  # also raised for text that is not ASCII
        raise ValueError("must be a kubeconfig in base64, never in plain text: base64 -w0 < kubeconfig") from None


def _hex_parser(length: int) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if not re.fullmatch(rf"(?!0+$)[0-9a-f]{{{length}}}", text):
            raise ValueError(f"must be {length} hexadecimal digits, not all zero")
        return text

    return parse


def _parse_traceparent(text: str) -> str:
    if not re.fullmatch(r"[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}", text):
        raise ValueError("must be a W3C trace context: 00-TRACE-SPAN-01")
    return text


def _parse_port(text: str) -> int:
    if not re.fullmatch("[0-9]{1,5}", text, re.ASCII) or not 1 <= int(text) <= 65535:
        raise ValueError("must be a port from 1 to 65535")
    return int(text)


def _parse_pipeline_url(text: str) -> str:
    """Errors do not contain the URL, because it may contain a password."""
    try:
        url = urlsplit(text)
    except ValueError:
        url = urlsplit("")
    if url.scheme not in {"http", "https"} or "@" in url.netloc or not re.fullmatch("[!-~]{1,200}", text):
        raise ValueError("must be an http or https URL of at most 200 characters, without a password")
    return text


def _parse_pushgateway_url(text: str) -> str:
    """Errors do not contain the URL, because it may contain a password."""
    try:
        url = urlsplit(text)
        is_usable = url.scheme in {"http", "https"} and url.hostname and url.port != 0 and not url.query + url.fragment
    except ValueError:
        is_usable = False
    if not is_usable or not re.fullmatch("[!-~]+", text):
        raise ValueError("must be the URL of a Pushgateway: http://host:9091")
    if "@" in url.netloc:
        raise InvalidInput(
            "a credential in plain text is refused", hint="mount it as /secrets/pushgateway-auth, user:password"
        )
    return text


@dataclass(frozen=True, slots=True)
class Setting:
    name: str
    description: str
    option: str = ""
    variable: str = ""
    default: str | None = None
    parse: Callable[[str], object] = str
    metavar: str = ""
    is_secret: bool = False
    is_flag: bool = False
    limits_run: bool = False
    """Without it a run does more, so a variable that is given and empty is an error, not the default."""


SETTINGS = (
    Setting("kubeconfig", "Kubeconfig file.", "--kubeconfig", "KUBECONFIG_PATH", metavar="FILE"),
    Setting("kubeconfig-data", "Kubeconfig in base64.", "", "KUBECONFIG_DATA", parse=_parse_base64, is_secret=True),
    Setting("context", "Context of the kubeconfig, if not the current one.", "--context", metavar="NAME"),
    Setting(
        "in-cluster", "Use the service account of the pod this runs in.", "--in-cluster",
        is_flag=True, parse=_parse_boolean,
    ),
    Setting(
        "environment", "Target environment.", "--environment", "ENVIRONMENT",
        parse=_choice_parser(*ENVIRONMENTS), metavar="|".join(ENVIRONMENTS),
    ),
    Setting(
        "scope", f"Which part of the platform: {SCOPE_FORMS}.", "--scope", "TARGET_SCOPE",
        default="platform", parse=parse_scope, metavar="SCOPE", limits_run=True,
    ),
    Setting(
        "dry-run", "Show what would be done; change nothing.", "--dry-run", "DRY_RUN",
        default="false", parse=_parse_boolean, is_flag=True, limits_run=True,
    ),
    Setting(
        "timeout", "Time limit of the whole run.", "--timeout", "ACTION_TIMEOUT",
        default="2h", parse=parse_time_limit, metavar="DURATION",
    ),
    Setting(
        "lock-timeout", "How long to wait while another run holds the lock.", "--lock-timeout", "LOCK_TIMEOUT",
        default="0s", parse=parse_duration, metavar="DURATION",
    ),
    Setting(
        "pipeline-url", "URL of the pipeline; the lock shows it to others.", "--pipeline-url", "PIPELINE_URL",
        parse=_parse_pipeline_url, metavar="URL",
    ),
    Setting(
        "pv-policy", "What teardown does with persistent volumes.", "--pv-policy", "PV_POLICY",
        default="retain", parse=_choice_parser("retain", "delete", "snapshot"), metavar="retain|delete|snapshot",
    ),
    Setting(
        "confirm", "Confirms a teardown: the name of the environment.", "--confirm", "TEARDOWN_CONFIRM", metavar="NAME"
    ),
    Setting(
        "log-level", "Lowest level that is logged.", "--log-level", "LOG_LEVEL",
        default="info", parse=_choice_parser("debug", "info", "warn", "error"), metavar="debug|info|warn|error",
    ),
    Setting(
        "log-format", "Log format; on a terminal text, otherwise json.", "--log-format", "LOG_FORMAT",
        default="json", parse=_choice_parser("text", "json"), metavar="text|json",
    ),
    Setting("trace-id", "Trace ID of this run.", "--trace-id", "TRACE_ID", parse=_hex_parser(32), metavar="HEX"),
    Setting("span-id", "Span ID of this run.", "--span-id", "SPAN_ID", parse=_hex_parser(16), metavar="HEX"),
    Setting(
        "traceparent", "Trace and span as a W3C traceparent.", "--traceparent", "TRACEPARENT",
        parse=_parse_traceparent, metavar="TEXT",
    ),
    Setting(
        "metrics-port", "Serve metrics on this port while running.", "--metrics-port", "METRICS_PORT",
        parse=_parse_port, metavar="PORT",
    ),
    Setting(
        "metrics-address", "Address to serve metrics on; in a pod 0.0.0.0.", "--metrics-address", "METRICS_ADDRESS",
        default="127.0.0.1", metavar="ADDRESS",
    ),
    Setting(
        "metrics-file", "File to write metrics to, for node_exporter.", "--metrics-file", "METRICS_FILE",
        metavar="FILE",
    ),
    Setting(
        "pushgateway", "Pushgateway to send metrics to at the end.", "--pushgateway", "PUSHGATEWAY_URL",
        parse=_parse_pushgateway_url, metavar="URL",
    ),
    Setting(
        "environment-file", "Environment file.", "--environment-file",
        default="/config/environment.yaml", metavar="FILE",
    ),
    Setting(
        "dag", "Platform file; without one, the reference platform.", "--dag",
        default="/config/dag.yaml", metavar="FILE",
    ),
    Setting("secrets", "Directory with credential files.", "--secrets", default="/secrets", metavar="DIRECTORY"),
    Setting(
        "argocd-token", "File with a token of Argo CD, if not argocd-token there.", "--argocd-token",
        "ARGOCD_AUTH_TOKEN_PATH", metavar="FILE",
    ),
    Setting(
        "health-checks", "Directory with your own health checks.", "--health-checks",
        default="/config/health", metavar="DIRECTORY",
    ),
)  # fmt: skip
SETTINGS_BY_NAME: Mapping[str, Setting] = {setting.name: setting for setting in SETTINGS}


@dataclass(frozen=True, slots=True)
class SettingValue:
    """The value of a setting; `origin` is the option, variable or file location that it comes from, or `default`."""

    setting: Setting
    value: object
    origin: str
    text: str = ""

    @property
    def is_default(self) -> bool:
        return self.origin == "default"

    @property
    def is_option(self) -> bool:
        """Whether it was given on the command line."""
        return self.origin.startswith("--")


def option_texts(options: Mapping[str, Any]) -> dict[str, str | None]:
    """Options by setting name: click uses underscores in names and booleans for flags, settings use dashes and text."""
    flags = {True: "true", False: None}
    return {
        name.replace("_", "-"): flags[value] if isinstance(value, bool) else value for name, value in options.items()
    }


def read_settings(
    options: Mapping[str, str | None], environ: Mapping[str, str], defaults: Mapping[str, str]
) -> tuple[dict[str, SettingValue], list[SettingsProblem]]:
    """Read every setting: an option overrides a variable, which overrides the default.

    An empty variable counts as not given, unless the setting limits what a run does. Returns the values that could be
    parsed and all problems.
    """
    values: dict[str, SettingValue] = {}
    problems = list(_plaintext_credential_problems(environ))
    for setting in SETTINGS:
        text, origin = _setting_text(setting, options, environ, defaults)
        if text == "":
            problems.append(SettingsProblem(origin, "must not be empty", "leave it out to use the default"))
            continue
        if text is None:
            values[setting.name] = SettingValue(setting, None, "default")
            continue
        try:
            values[setting.name] = SettingValue(setting, setting.parse(text), origin, text)
        except ValueError as error:
            problems.append(SettingsProblem(origin, str(error)))
        except InvalidInput as error:
            problems.append(SettingsProblem(origin, error.what, error.hint))
    return values, problems


def _setting_text(
    setting: Setting, options: Mapping[str, str | None], environ: Mapping[str, str], defaults: Mapping[str, str]
) -> tuple[str | None, str]:
    if text := options.get(setting.name):
        return text, setting.option
    if (text := environ.get(setting.variable)) or (text == "" and setting.limits_run):
        return text, setting.variable
    return defaults.get(setting.name, setting.default), "default"


def _plaintext_credential_problems(environ: Mapping[str, str]) -> Iterator[SettingsProblem]:
    for variable, file in PLAINTEXT_CREDENTIALS.items():
        if environ.get(variable):
            yield SettingsProblem(variable, "a credential in plain text is refused", f"mount it as {file}")
