"""Loads `Settings` from options, environment variables, files and mounts, or reports every problem in them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from windlass.core.platform.model import scopes
from windlass.core.platform.model.scopes import Scope
from windlass.errors import InvalidInput
from windlass.settings.environment_files import EnvironmentFile
from windlass.settings.mounts import Mounts, read_mounts
from windlass.settings.platform_files import PlatformFile
from windlass.settings.platforms import PlatformDefinition, assemble_platform
from windlass.settings.problems import InvalidSettings, SettingsProblem
from windlass.settings.requirements import environment_mismatch, requirement_problems
from windlass.settings.variables import SettingValue, read_settings
from windlass.settings.yaml_positions import ParsedFile, parse_file

if TYPE_CHECKING:
    from collections.abc import Mapping

Model = TypeVar("Model", EnvironmentFile, PlatformFile)


@dataclass(frozen=True, slots=True)
class Settings:
    values: Mapping[str, SettingValue]
    """By setting name; see `variables.SETTINGS`."""
    definition: PlatformDefinition
    environment_file: ParsedFile[EnvironmentFile] | None
    mounts: Mounts
    platform_file: ParsedFile[PlatformFile] | None

    @property
    def scope(self) -> Scope:
        scope = self.values["scope"].value
        assert isinstance(scope, Scope)
        return scope


@dataclass(frozen=True, slots=True)
class Inputs:
    """The inputs of a command other than files."""

    options: Mapping[str, str | None]
    environ: Mapping[str, str]
    is_terminal: bool = False


def load(inputs: Inputs, action: str = "") -> Settings:
    """Load all settings; raises InvalidSettings with every problem found.

    If `action` is deploy, validate or teardown, the settings that it requires must be given. Without an action none is
    required.
    """
    values, problems = read_settings(
        inputs.options, inputs.environ, {"log-format": "text"} if inputs.is_terminal else {}
    )
    environment_file = _read_file(values["environment-file"], EnvironmentFile, problems)
    problems += environment_mismatch(values, environment_file)
    platform_file = _read_file(values["dag"], PlatformFile, problems)
    definition = assemble_platform(platform_file, environment_file.model if environment_file else None)
    problems += definition if isinstance(definition, list) else _scope_problems(values, definition, problems)
    mounts = read_mounts(values)
    problems += mounts.problems
    if action:
        problems += requirement_problems(action, values, environment_file)
    if problems or isinstance(definition, list):
        raise InvalidSettings(problems)
    return Settings(_with_file_timeout(values, environment_file), definition, environment_file, mounts, platform_file)


def _read_file(value: SettingValue, model: type[Model], problems: list[SettingsProblem]) -> ParsedFile[Model] | None:
    """Read and check a file; `None` if it is missing or invalid. Only a file at the default path may be missing."""
    path = Path(str(value.value))
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        if not value.is_default:
            problems.append(SettingsProblem(value.origin, f"there is no file {path}"))
        return None
    except OSError as error:
        problems.append(SettingsProblem(str(path), f"the file cannot be read: {error.strerror}"))
        return None
    parsed_file = parse_file(content, str(path), model)
    if isinstance(parsed_file, list):
        problems += parsed_file
        return None
    return parsed_file


def _scope_problems(
    values: Mapping[str, SettingValue], definition: PlatformDefinition, problems: list[SettingsProblem]
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


def _with_file_timeout(
    values: Mapping[str, SettingValue], environment_file: ParsedFile[EnvironmentFile] | None
) -> Mapping[str, SettingValue]:
    """Take the timeout from the environment file if neither option nor variable sets it."""
    timeout = environment_file.model.timeouts.overall if environment_file else None
    if environment_file is None or timeout is None or not values["timeout"].is_default:
        return values
    location = environment_file.positions.location(("timeouts", "overall"))
    return {**values, "timeout": replace(values["timeout"], value=timeout, origin=location)}
