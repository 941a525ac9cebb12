"""The settings that an action requires. Required settings have no defaults."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.settings.problems import SettingsProblem, credential_source_problems

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from windlass.settings.environment_files import EnvironmentFile
    from windlass.settings.variables import SettingValue
    from windlass.settings.yaml_positions import ParsedFile

ACTIONS = ("deploy", "validate", "teardown")


def requirement_problems(
    action: str,
    values: Mapping[str, SettingValue],
    environment_file: ParsedFile[EnvironmentFile] | None,
    environ: Mapping[str, str],
) -> Iterator[SettingsProblem]:
    """Problems with required settings. Values that failed to parse are absent here and have been reported already."""
    yield from _credential_problems(values, environ)
    if "environment" in values and values["environment"].value is None:
        yield SettingsProblem("", "the target environment is missing", "--environment or ENVIRONMENT")
    if action == "deploy" and environment_file is None and values["environment-file"].is_default:
        yield SettingsProblem(
            "", f"{values['environment-file'].value} is missing", "mount it, or name it by --environment-file"
        )
    if action == "teardown" and not _is_dry_run(values):
        yield from _confirmation_problems(values, environment_file)


def _credential_problems(values: Mapping[str, SettingValue], environ: Mapping[str, str]) -> Iterator[SettingsProblem]:
    """Exactly one source of credentials must be given; an option overrides the variables."""
    sources = [name for name in ("kubeconfig", "kubeconfig-data", "in-cluster") if _is_given(values, name)]
    option_sources = [name for name in sources if values[name].is_option]
    if "kubeconfig-data" in values:
        yield from credential_source_problems([values[name].origin for name in option_sources or sources], environ)


def environment_mismatch(
    values: Mapping[str, SettingValue], environment_file: ParsedFile[EnvironmentFile] | None
) -> Iterator[SettingsProblem]:
    """The environment file is of another environment than the one requested, probably a wrong mount."""
    if environment_file is None or not _is_given(values, "environment"):
        return
    requested, name = str(values["environment"].value), environment_file.model.name
    if name != requested and not name.startswith(f"{requested}-"):
        location = environment_file.positions.location(("name",))
        what = f"this is the file of {name}, but {values['environment'].origin} is {requested}"
        yield SettingsProblem(location, what, f"name must be {requested}, or begin with {requested}-")


def _confirmation_problems(
    values: Mapping[str, SettingValue], environment_file: ParsedFile[EnvironmentFile] | None
) -> Iterator[SettingsProblem]:
    confirmation = values["confirm"].value
    expected = environment_file.model.name if environment_file else _text(values, "environment")
    if confirmation is None:
        name = expected or "NAME"  # without a name the environment is missing, which is a problem of its own
        what = f"the teardown of {expected or 'an environment'} is not confirmed"
        yield SettingsProblem("", what, f"add --confirm {name}, or set TEARDOWN_CONFIRM={name}")
    elif expected and confirmation != expected:
        yield SettingsProblem(
            values["confirm"].origin, "the confirmation names another environment", f"it must be {expected}"
        )


def _is_given(values: Mapping[str, SettingValue], name: str) -> bool:
    return name in values and values[name].value not in (None, False)


def _is_dry_run(values: Mapping[str, SettingValue]) -> bool:
    return _is_given(values, "dry-run")


def _text(values: Mapping[str, SettingValue], name: str) -> str:
    return str(values[name].value) if _is_given(values, name) else ""
