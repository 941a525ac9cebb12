"""Command line options of several commands; most are generated from the table of settings."""

from __future__ import annotations

import re
import shlex
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

from windlass.errors import WindlassError
from windlass.settings.variables import SETTINGS_BY_NAME, Setting

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from click.shell_completion import CompletionItem

Command = TypeVar("Command", bound="Callable[..., Any]")

CONNECTION_SETTINGS = ("kubeconfig", "context", "in-cluster")
FILE_SETTINGS = ("environment", "dag", "environment-file", "health-checks", "secrets")
REPEATED_SETTINGS = (*CONNECTION_SETTINGS, *FILE_SETTINGS, "scope", "pv-policy", "timeout")
"""Settings that define a run. A recommended command repeats them; a confirmation must be given anew."""
TELEMETRY_SETTINGS = (
    *("log-level", "log-format", "metrics-port", "metrics-address", "metrics-file", "pushgateway"),
    *("trace-id", "span-id", "traceparent"),
)
"""Settings of logs, metrics and traces."""
ACCEPTED_SETTINGS: Mapping[str, tuple[str, ...]] = {
    "cluster": CONNECTION_SETTINGS,
    "lint": FILE_SETTINGS,
    "rbac": FILE_SETTINGS,
}
"""By command: the repeated settings that it accepts, if not all."""


def report_options(command: Command) -> Command:
    """The options of a command that prints a report; `report_output.report_outputs` checks them."""
    options = (
        click.option(
            "--format",
            "form",
            type=click.Choice(["text", "json", "junit"]),
            help="Format of the report on stdout.  [default: text]",
        ),
        click.option(
            "--report",
            metavar="FORMAT=FILE",
            multiple=True,
            help="Also write the report to this file, as text, json or junit; - is stdout. Repeatable.",
        ),
        click.option("--details", is_flag=True, help="On a terminal, print all details instead of one screen."),
    )
    for option in reversed(options):
        command = option(command)
    return command


take_over_option = click.option(
    "--take-over", is_flag=True, help="Run although the cluster is recorded as another environment or platform."
)
delete_foreign_option = click.option(
    "--delete-foreign",
    metavar="NODE",
    multiple=True,
    help="Remove this application even if objects that are not the platform's are destroyed with it. Repeatable.",
)
output_format_option = click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Output format."
)


def setting_options(*names: str) -> Callable[[Command], Command]:
    def decorate(command: Command) -> Command:
        for name in reversed(names):
            command = _option(SETTINGS_BY_NAME[name])(command)
        return command

    return decorate


def command_with_options(text: str, options: Mapping[str, str | None]) -> str:
    """Append the user's options to a text that ends in a windlass command, so that it can be copied and run.

    `options` are by setting name. A text without a command is returned unchanged.
    """
    command = re.search(r"windlass ([a-z]+)[^\n]*$", text)
    if command is None:
        return text
    arguments = [
        SETTINGS_BY_NAME[name].option
        if SETTINGS_BY_NAME[name].is_flag
        else f"{SETTINGS_BY_NAME[name].option} {shlex.quote(value)}"
        for name in ACCEPTED_SETTINGS.get(command[1], REPEATED_SETTINGS)
        if (value := options.get(name)) and f" {SETTINGS_BY_NAME[name].option} " not in f"{text} "
    ]
    return " ".join((text, *arguments))


def _option(setting: Setting) -> Callable[[Command], Command]:
    variable = f"  [{setting.variable}]" if setting.variable else ""
    default = f"  [default: {setting.default}]" if setting.default and not setting.is_flag else ""
    help_text = f"{setting.description}{variable}{default}"
    if setting.is_flag:
        return click.option(setting.option, is_flag=True, help=help_text)
    return click.option(
        setting.option, metavar=setting.metavar, help=help_text, shell_complete=partial(_completions, setting)
    )


def _completions(setting: Setting, context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """What a shell offers for the value of an option: choices, files or directories."""
    from click.shell_completion import CompletionItem  # noqa: PLC0415 - only a shell needs it

    if setting.metavar in {"FILE", "DIRECTORY"}:
        return [CompletionItem(incomplete, type="file" if setting.metavar == "FILE" else "dir")]
    choices = setting.metavar.split("|") if "|" in setting.metavar else []
    if setting.name == "scope":
        choices = _scopes(context, incomplete)
    return [CompletionItem(choice) for choice in choices if choice.startswith(incomplete)]


def _scopes(context: click.Context, incomplete: str) -> list[str]:
    """The kinds of scopes; after a colon, the stacks and applications of the platform file, if it can be read."""
    if ":" not in incomplete:
        return ["platform", "stack:", "app:"]
    from windlass.settings.source import SettingsSource  # noqa: PLC0415 - loads pydantic and YAML later

    try:
        platform = SettingsSource({}).settings({"dag": context.params.get("dag")}).platform
    except WindlassError:
        return []
    return [*(f"stack:{stack.name}" for stack in platform.stacks), *(f"app:{name}" for name in platform.applications)]
