"""The settings that an action requires. Required settings have no defaults."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.settings.problems import Mistake

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from windlass.settings.environment_files import EnvironmentFile
    from windlass.settings.variables import Value
    from windlass.settings.yaml_positions import Checked

ACTIONS = ("deploy", "validate", "teardown")


def mistakes_for(
    action: str, values: Mapping[str, Value], environment: Checked[EnvironmentFile] | None
) -> Iterator[Mistake]:
    """Problems with required settings. Values that failed to parse are absent here and have been reported already."""
    yield from _access(values)
    if "environment" in values and values["environment"].value is None:
        yield Mistake("", "the target environment is missing", "--environment or ENVIRONMENT")
    if action == "deploy" and environment is None and values["environment-file"].is_default:
        yield Mistake(
            "", f"{values['environment-file'].value} is missing", "mount it, or name it by --environment-file"
        )
    if action == "teardown" and not _is_dry_run(values):
        yield from _confirmation(values, environment)


def _access(values: Mapping[str, Value]) -> Iterator[Mistake]:
    """Exactly one source of credentials must be given; an option overrides the variables."""
    ways = [name for name in ("kubeconfig", "kubeconfig-data", "in-cluster") if _is_given(values, name)]
    options = [name for name in ways if values[name].origin.startswith("--")]
    if "kubeconfig-data" in values and len(options or ways) != 1:
        what = "give exactly one of --kubeconfig (KUBECONFIG_PATH), KUBECONFIG_DATA and --in-cluster"
        yield Mistake(
            "", what, f"given: {', '.join(values[name].origin for name in ways)}" if ways else "none is given"
        )


def wrong_environment(values: Mapping[str, Value], environment: Checked[EnvironmentFile] | None) -> Iterator[Mistake]:
    """The environment file is of another environment than the one requested, probably a wrong mount."""
    if environment is None or not _is_given(values, "environment"):
        return
    wanted, name = str(values["environment"].value), environment.model.name
    if name != wanted and not name.startswith(f"{wanted}-"):
        place = environment.marks.place(("name",))
        what = f"this is the file of {name}, but {values['environment'].origin} is {wanted}"
        yield Mistake(place, what, f"name must be {wanted}, or begin with {wanted}-")


def _confirmation(values: Mapping[str, Value], environment: Checked[EnvironmentFile] | None) -> Iterator[Mistake]:
    given = values["confirm"].value
    expected = environment.model.name if environment else _text(values, "environment")
    if given is None:
        yield Mistake("", "a teardown must be confirmed", "TEARDOWN_CONFIRM=<name of the environment>")
    elif expected and given != expected:
        yield Mistake(values["confirm"].origin, "the confirmation names another environment", f"it must be {expected}")


def _is_given(values: Mapping[str, Value], name: str) -> bool:
    return name in values and values[name].value not in (None, False)


def _is_dry_run(values: Mapping[str, Value]) -> bool:
    return _is_given(values, "dry-run")


def _text(values: Mapping[str, Value], name: str) -> str:
    return str(values[name].value) if _is_given(values, name) else ""
