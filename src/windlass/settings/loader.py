"""Loads the settings of a command from options, environment variables, files and mounts, or reports every problem."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from windlass.core.log_lines import Level
from windlass.core.platform.model import scopes
from windlass.core.platform.model.scopes import Scope
from windlass.core.platform.teardown.volumes import VolumePolicy
from windlass.errors import InvalidInput
from windlass.kube.bounded_files import read_file
from windlass.kube.redactions import Redactor
from windlass.settings.effective_values import effective_values, setting_values
from windlass.settings.environment_files import DEFAULT_ARGOCD_NAMESPACE, EnvironmentFile
from windlass.settings.mounts import Mounts, read_mounts
from windlass.settings.platform_files import PlatformFile
from windlass.settings.platforms import PlatformDefinition, assemble_platform
from windlass.settings.problems import InvalidSettings, SettingsProblem
from windlass.settings.requirements import environment_mismatch, requirement_problems
from windlass.settings.settings import (
    ClusterCredentials,
    ClusterSettings,
    RootSource,
    Settings,
    TelemetrySettings,
    TerminalSettings,
    require_one_source,
)
from windlass.settings.variables import SettingValue, read_settings
from windlass.settings.yaml_positions import ParsedFile, parse_file

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windlass.settings.file_fields import FileModel
    from windlass.settings.settings import EffectiveValue

    Values = Mapping[str, SettingValue]

Model = TypeVar("Model", EnvironmentFile, PlatformFile)
TERMINAL_VARIABLES = (
    *("TERM", "COLORTERM", "NO_COLOR", "FORCE_COLOR"),
    *("COLUMNS", "LINES", "TTY_COMPATIBLE", "TTY_INTERACTIVE"),
)


@dataclass(frozen=True, slots=True)
class Inputs:
    """The inputs of a command other than files."""

    options: Mapping[str, str | None]
    """By setting name."""
    environ: Mapping[str, str]
    is_terminal: bool = False
    redactor: Redactor = field(default_factory=Redactor, repr=False)


def load_settings(inputs: Inputs, action: str = "") -> Settings:
    """Load all settings; raises InvalidSettings with every problem found.

    If `action` is deploy, validate or teardown, the settings that it requires must be given. Without an action none is
    required.
    """
    values, problems = _read_values(inputs)
    environment_file = _read_file(values["environment-file"], EnvironmentFile, problems)
    problems += environment_mismatch(values, environment_file)
    platform_file = _read_file(values["dag"], PlatformFile, problems)
    definition = assemble_platform(platform_file, environment_file.model if environment_file else None)
    problems += definition if isinstance(definition, list) else _scope_problems(values, definition, problems)
    mounts = read_mounts(values)
    problems += mounts.problems
    if action:
        problems += requirement_problems(action, values, environment_file, inputs.environ)
    if problems or isinstance(definition, list):
        raise InvalidSettings(problems)
    values = _with_file_timeout(values, environment_file)
    scope = values["scope"].value
    assert isinstance(scope, Scope)
    file = environment_file.model if environment_file else None
    return Settings(
        cluster=_cluster_settings(values, inputs, mounts),
        definition=definition,
        scope=scope,
        environment_name=file.name if file else _text(values, "environment"),
        environment_path=environment_file.positions.source if environment_file else "",
        platform_path=platform_file.positions.source if platform_file else "",
        argocd_namespace=file.argocd_namespace if file else DEFAULT_ARGOCD_NAMESPACE,
        root=_root_source(file) if file else None,
        volume_policy=VolumePolicy(_text(values, "pv-policy")),
        is_dry_run=values["dry-run"].value is True,
        effective_values=tuple(effective_values(values, environment_file, mounts, definition, platform_file)),
    )


def load_readable_values(inputs: Inputs) -> tuple[EffectiveValue, ...]:
    """The settings that could be parsed, for `windlass config` if others are invalid."""
    values, _ = _read_values(inputs)
    return tuple(setting_values(values))


def load_cluster_settings(inputs: Inputs) -> ClusterSettings:
    """Load options and variables only, for commands that read no files."""
    return _cluster_settings(_valid_values(inputs), inputs, Mounts())


def load_all_applications_settings(inputs: Inputs) -> ClusterSettings:
    """Load the settings of `validate --all`, which refuses every setting that selects applications."""
    values = _valid_values(inputs)
    for value in (values[name] for name in ("scope", "dag", "environment-file")):
        if not value.is_default:
            raise InvalidInput(
                "--all means every Application", where=value.origin, hint=f"leave out {value.origin}, or --all"
            )
    mounts = read_mounts(values)
    if mounts.problems:
        raise InvalidSettings(mounts.problems)
    return _cluster_settings(values, inputs, mounts)


def load_credentials(inputs: Inputs) -> ClusterCredentials:
    """Load the credentials only, so that `windlass cluster` works if other settings are invalid."""
    option, in_cluster = inputs.options.get("kubeconfig"), inputs.options.get("in-cluster") is not None
    variable = inputs.environ.get("KUBECONFIG_PATH")
    path = option or variable or None
    data = None if option else inputs.environ.get("KUBECONFIG_DATA") or None
    given = {
        "--kubeconfig": bool(option),
        "KUBECONFIG_PATH": bool(variable and not option),
        "KUBECONFIG_DATA": data is not None,
        "--in-cluster": in_cluster,
    }
    require_one_source([name for name, is_given in given.items() if is_given], inputs.environ)
    try:
        content = None if data is None else base64.b64decode("".join(data.split()), validate=True)
    except ValueError:  # also raised for text that is not ASCII
        raise InvalidInput("not base64", where="KUBECONFIG_DATA", hint="base64 -w0 < kubeconfig") from None
    context = inputs.options.get("context")
    return ClusterCredentials(path, content, in_cluster, context, inputs.environ, inputs.redactor)


def _read_values(inputs: Inputs) -> tuple[Values, list[SettingsProblem]]:
    return read_settings(inputs.options, inputs.environ, {"log-format": "text"} if inputs.is_terminal else {})


def _valid_values(inputs: Inputs) -> Values:
    values, problems = _read_values(inputs)
    if problems:
        raise InvalidSettings(problems)
    return values


def _cluster_settings(values: Values, inputs: Inputs, mounts: Mounts) -> ClusterSettings:
    timeout, lock_timeout, environ = values["timeout"].value, values["lock-timeout"].value, inputs.environ
    assert isinstance(timeout, timedelta)
    assert isinstance(lock_timeout, timedelta)
    return ClusterSettings(
        credentials=_credentials(values, inputs),
        environment=_text(values, "environment"),
        timeout=timeout,
        lock_timeout=lock_timeout,
        pipeline_url=_text(values, "pipeline-url"),
        telemetry=_telemetry_settings(values),
        terminal=TerminalSettings({name: environ[name] for name in TERMINAL_VARIABLES if name in environ}),
        given_options={name: value.text for name, value in values.items() if value.is_option},
        mounts=mounts,
    )


def _credentials(values: Values, inputs: Inputs) -> ClusterCredentials:
    """An option overrides the variables: `--kubeconfig` the other variable, `--in-cluster` both."""
    kubeconfig, in_cluster = values["kubeconfig"], values["in-cluster"].value is True
    path, data, context = kubeconfig.value, values["kubeconfig-data"].value, values["context"].value
    return ClusterCredentials(
        kubeconfig=str(path) if path and (kubeconfig.is_option or not in_cluster) else None,
        kubeconfig_data=data if isinstance(data, bytes) and not (kubeconfig.is_option or in_cluster) else None,
        in_cluster=in_cluster,
        context=str(context) if context else None,
        environ=inputs.environ,
        redactor=inputs.redactor,
    )


def _telemetry_settings(values: Values) -> TelemetrySettings:
    _, trace_id, span_id, *_ = [*_text(values, "traceparent").split("-"), "", "", ""]
    port, file = values["metrics-port"].value, _text(values, "metrics-file")
    return TelemetrySettings(
        log_level=Level(_text(values, "log-level")),
        log_format="text" if _text(values, "log-format") == "text" else "json",
        is_log_configured=not (values["log-format"].is_default and values["log-level"].is_default),
        trace_id=_text(values, "trace-id") or trace_id,
        span_id=_text(values, "span-id") or span_id,
        metrics_port=port if isinstance(port, int) else None,
        metrics_address=_text(values, "metrics-address"),
        metrics_file=Path(file) if file else None,
        pushgateway=_text(values, "pushgateway"),
    )


def _root_source(file: EnvironmentFile) -> RootSource:
    parameters = {"environment": file.name, "domain": file.domain}
    if file.cluster_name:
        parameters["clusterName"] = file.cluster_name
    return RootSource(file.git_repository, file.git_revision, file.git_path or ".", parameters)


def _text(values: Values, name: str) -> str:
    value = values[name].value
    return "" if value is None else str(value)


def _read_file(value: SettingValue, model: type[Model], problems: list[SettingsProblem]) -> ParsedFile[Model] | None:
    """Read and check a file; `None` if it is missing or invalid. Only a file at the default path may be missing."""
    path = Path(str(value.value))
    try:
        content = read_file(path)
    except FileNotFoundError:
        if not value.is_default:
            problems.append(SettingsProblem(value.origin, f"there is no file {path}"))
        return None
    except OSError as error:
        problems.append(SettingsProblem(str(path), f"the file cannot be read: {error.strerror}"))
        return None
    parsed_file = parse_file(content, str(path), model)
    if isinstance(parsed_file, list):
        problems += _mistaken_file_problems(content, str(path), model) or parsed_file
        return None
    problems += parsed_file.problems
    return parsed_file


def _mistaken_file_problems(content: bytes, path: str, model: type[Model]) -> list[SettingsProblem]:
    """One problem if the file is of the other kind: the options were swapped."""
    kinds: dict[type[FileModel], str] = {EnvironmentFile: "an environment file", PlatformFile: "a platform file"}
    names = [kinds.pop(model), *kinds.values()][::-1]
    if isinstance(parse_file(content, path, *kinds), list):
        return []
    return [
        SettingsProblem(
            f"{path}:1:1", f"this is {names[0]}, not {names[1]}", "are --dag and --environment-file swapped?"
        )
    ]


def _scope_problems(
    values: Values, definition: PlatformDefinition, problems: list[SettingsProblem]
) -> list[SettingsProblem]:
    """Problems of the scope; none if the platform file is invalid, because names cannot be looked up then."""
    path = str(values["dag"].value)
    scope = values["scope"].value if "scope" in values else None
    if not isinstance(scope, Scope) or any(problem.where.startswith(path) for problem in problems):
        return []
    try:
        scopes.selected_nodes(definition.platform, scope)
    except InvalidInput as error:
        return [SettingsProblem(values["scope"].origin, error.what, error.hint)]
    return []


def _with_file_timeout(values: Values, environment_file: ParsedFile[EnvironmentFile] | None) -> Values:
    """Take the timeout from the environment file if neither option nor variable sets it."""
    timeout = environment_file.model.timeouts.overall if environment_file else None
    if environment_file is None or timeout is None or not values["timeout"].is_default:
        return values
    location = environment_file.positions.location(("timeouts", "overall"))
    return {**values, "timeout": replace(values["timeout"], value=timeout, origin=location)}
