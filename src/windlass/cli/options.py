"""Options of commands, made from the one table of settings: their names, variables, defaults and words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click

from windlass.settings.variables import BY_NAME, Setting

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Command = TypeVar("Command", bound="Callable[..., Any]")


def setting_options(*names: str) -> Callable[[Command], Command]:
    def decorate(command: Command) -> Command:
        for name in reversed(names):
            command = _option(BY_NAME[name])(command)
        return command

    return decorate


def given(options: Mapping[str, Any]) -> dict[str, str | None]:
    """As settings name them: click writes underscores, and flags are words."""
    flags = {True: "true", False: None}
    return {
        name.replace("_", "-"): flags[value] if isinstance(value, bool) else value for name, value in options.items()
    }


def _option(setting: Setting) -> Callable[[Command], Command]:
    variable = f"  [{setting.variable}]" if setting.variable else ""
    default = f"  [default: {setting.default}]" if setting.default and not setting.is_flag else ""
    words = f"{setting.what}{variable}{default}"
    if setting.is_flag:
        return click.option(setting.option, is_flag=True, help=words)
    return click.option(setting.option, metavar=setting.metavar, help=words)
