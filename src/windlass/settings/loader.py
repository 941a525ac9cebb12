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
from windlass.settings.platforms import Assembled, assembled
from windlass.settings.problems import InvalidSettings, Mistake
from windlass.settings.requirements import mistakes_for, wrong_environment
from windlass.settings.variables import Value, read_settings
from windlass.settings.yaml_positions import Checked, checked

if TYPE_CHECKING:
    from collections.abc import Mapping

Model = TypeVar("Model", EnvironmentFile, PlatformFile)


@dataclass(frozen=True, slots=True)
class Settings:
    values: Mapping[str, Value]
    """By setting name; see `variables.SETTINGS`."""
    assembled: Assembled
    environment: Checked[EnvironmentFile] | None
    mounts: Mounts
    dag: Checked[PlatformFile] | None

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
    values, mistakes = read_settings(
        inputs.options, inputs.environ, {"log-format": "text"} if inputs.is_terminal else {}
    )
    environment = _read(values["environment-file"], EnvironmentFile, mistakes)
    mistakes += wrong_environment(values, environment)
    dag = _read(values["dag"], PlatformFile, mistakes)
    found = assembled(dag, environment.model if environment else None)
    mistakes += found if isinstance(found, list) else _wrong_scope(values, found, mistakes)
    mounts = read_mounts(values)
    mistakes += mounts.mistakes
    if action:
        mistakes += mistakes_for(action, values, environment)
    if mistakes or isinstance(found, list):
        raise InvalidSettings(mistakes)
    return Settings(_with_file(values, environment), found, environment, mounts, dag)


def _read(value: Value, model: type[Model], mistakes: list[Mistake]) -> Checked[Model] | None:
    """Read and check a file; `None` if it is missing or invalid. Only a file at the default path may be missing."""
    path = Path(str(value.value))
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        if not value.is_default:
            mistakes.append(Mistake(value.origin, f"there is no file {path}"))
        return None
    except OSError as error:
        mistakes.append(Mistake(str(path), f"the file cannot be read: {error.strerror}"))
        return None
    found = checked(content, str(path), model)
    if isinstance(found, list):
        mistakes += found
        return None
    return found


def _wrong_scope(values: Mapping[str, Value], found: Assembled, mistakes: list[Mistake]) -> list[Mistake]:
    """Problems of the scope; none if the platform file is invalid, because names cannot be looked up then."""
    path = str(values["dag"].value)
    scope = values["scope"].value if "scope" in values else None
    if not isinstance(scope, Scope) or any(mistake.where.startswith(path) for mistake in mistakes):
        return []
    try:
        scopes.selected(found.platform, scope)
    except InvalidInput as error:
        return [Mistake(values["scope"].origin, error.what, error.hint)]
    return []


def _with_file(values: Mapping[str, Value], environment: Checked[EnvironmentFile] | None) -> Mapping[str, Value]:
    """Take the timeout from the environment file if neither option nor variable sets it."""
    limit = environment.model.timeouts.overall if environment else None
    if environment is None or limit is None or not values["timeout"].is_default:
        return values
    place = environment.marks.place(("timeouts", "overall"))
    return {**values, "timeout": replace(values["timeout"], value=limit, origin=place)}
