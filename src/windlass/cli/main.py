"""The command line interface: the table of commands, and `main`, which turns errors into messages and an exit code.

A command is imported when it is called, so that `--help` and a mistyped command wait for nothing.
"""

from __future__ import annotations

import errno
import io
import sys
import traceback
from contextlib import suppress
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING

import click

from windlass import __version__
from windlass.cli.options import command_with_options
from windlass.cli.printed_lines import print_text
from windlass.errors import ExitCode, WindlassError
from windlass.settings.source import SettingsSource
from windlass.settings.variables import option_texts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from windlass.kube.redactions import Redactor

    WriteText = Callable[[str], None]

COMMANDS: Mapping[str, tuple[str, str]] = {
    "cluster": ("cluster", "Show the server, identity and Applications of a kubeconfig."),
    "config": ("config", "Show every effective setting and where it comes from."),
    "demo": ("demo", "Deploy, break, fix and remove a platform on a sandbox."),
    "deploy": ("deploy", "Deploy the platform in dependency order."),
    "graph": ("graph", "Show the dependency graph of the platform."),
    "import": ("import_", "Write a platform file from a live Argo CD."),
    "lint": ("lint", "Check the platform and environment files."),
    "plan": ("plan", "Show what a deploy or a teardown would do."),
    "rbac": ("rbac", "Print the RBAC rights that an action needs."),
    "rehearse": ("rehearse", "Simulate a deploy of the platform file."),
    "sandbox": ("sandbox", "Serve an embedded Kubernetes cluster on 127.0.0.1."),
    "status": ("status", "Show health, changes, failures and who holds the lock."),
    "teardown": ("teardown", "Remove the platform in reverse dependency order."),
    "validate": ("validate", "Check that the platform is healthy and follows its rules."),
    "wait": ("wait", "Wait until an Application is in sync and healthy."),
}
"""By name: the module in `cli.commands`, with a click command of the same name, and the first line of its help."""
ADVISED_COMMANDS = frozenset({"deploy", "validate", "teardown", "plan", "import", "wait", "status"})
"""Commands whose errors come with a recommended next command.

These start from settings and a cluster. The other commands are what a recommendation tells the user to run.
"""


class NonEmptyText(click.types.StringParamType):
    """Refuses an empty value: it is a shell variable that was not set, and ignoring it would widen what a run does."""

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value == "":
            self.fail("must not be empty; leave it out to use the default", param, ctx)
        return super().convert(value, param, ctx)


def load_command(name: str) -> click.Command:
    module, _ = COMMANDS[name]
    command = getattr(import_module(f"windlass.cli.commands.{module}"), module)
    assert isinstance(command, click.Command)
    for parameter in command.params:
        if isinstance(parameter.type, click.types.StringParamType):
            parameter.type = NonEmptyText()
    return command


class LazyGroup(click.Group):
    """Knows the name and the help of each command, for `--help`; imports the command itself when it is called."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, _, arguments = super().resolve_command(ctx, args)
        return name, load_command(name) if name else None, arguments


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, message="%(prog)s %(version)s")
def windlass() -> None:
    """Deploy, check and remove a Kubernetes platform of Argo CD Applications.

    Exit codes: 0 success, 1 failure, 2 partial, 3 invalid configuration or arguments, 4 timeout.
    """


for _name, (_, _help) in COMMANDS.items():
    windlass.add_command(click.Command(_name, help=_help))


def main(argv: Sequence[str], environ: Mapping[str, str]) -> int:
    source = SettingsSource(environ, is_terminal=sys.stderr.isatty())
    write = _json_writer(argv, source) if _requests_json(argv, environ) else _print_line
    try:
        result = windlass.main(list(argv), prog_name="windlass", standalone_mode=False, obj=source)
    except click.ClickException as error:
        write(_click_message(error))
        return ExitCode.INVALID
    except WindlassError as error:
        options = _command_line_options(argv)
        _print_error(error, options, source.redactor, write)
        if error.recommendation_key and ADVISED_COMMANDS.intersection(argv[:1]):
            _print_recommendation(error.recommendation_key, _action_with_rights(argv[0], options), options, write)
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        write("interrupted")
        return ExitCode.FAILURE
    except BrokenPipeError:
        return ExitCode.FAILURE  # the reader of stdout is gone: there is nowhere to print an error
    except Exception as error:  # noqa: BLE001 - last resort: report a bug in one line instead of a traceback
        if isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EBADF}:
            write(f"error: the output cannot be written: {error.strerror}")
        else:
            _print_bug(error, source.redactor, write, debug=environ.get("LOG_LEVEL") == "debug")
        return ExitCode.FAILURE
    return result if isinstance(result, int) else ExitCode.SUCCESS


def _click_message(error: click.ClickException) -> str:
    """Usage and message; the message may quote an argument, which may come from a CI system."""
    text = io.StringIO()
    error.show(file=text)
    return text.getvalue().rstrip("\n")


def _command_line_options(argv: Sequence[str]) -> Mapping[str, str | None]:
    """Parse the options of the command line again and return them by setting name."""
    context = load_command(argv[0]).make_context(argv[0], list(argv[1:]), resilient_parsing=True)
    return option_texts(context.params)


def _print_error(error: WindlassError, options: Mapping[str, str | None], redact: Redactor, write: WriteText) -> None:
    write(f"error: {_redacted_lines(error.what, redact)}")
    if error.where:
        write(f"where: {redact.one_line(error.where)}")
    if error.hint:
        write(f"hint:  {redact.printable(command_with_options(error.hint, options))}")


def _redacted_lines(text: str, redact: Redactor) -> str:
    """The lines of an error; a list of problems has several."""
    return "\n".join(map(redact.printable, redact(text).split("\n")))


def _action_with_rights(command: str, options: Mapping[str, str | None]) -> str:
    """The action whose rights the command needs: a plan of a teardown looks at everything, a refresh is a write."""
    if command != "plan" or options.get("action") == "teardown":
        return options.get("action") or command
    return "deploy" if options.get("refresh") else command


def _print_recommendation(key: str, command: str, options: Mapping[str, str | None], write: WriteText) -> None:
    from windlass.core.platform.reporting.recommendations import RunProblem, recommendation_for  # noqa: PLC0415 - lazy import

    recommendation = recommendation_for(RunProblem(key), rerun_command=f"windlass {command}")
    write(f"next:  {recommendation.sentence}\n       $ {command_with_options(recommendation.command, options)}")


def _print_bug(error: Exception, redact: Redactor, write: WriteText, *, debug: bool) -> None:
    """Print the type and the location of the exception; its message only in a traceback that was asked for."""
    if debug:
        write(_redacted_lines("".join(traceback.format_exception(error)), redact))
    frame = traceback.extract_tb(error.__traceback__)[-1]
    write(f"error: this is a bug in windlass: {type(error).__name__} in {frame.name}, line {frame.lineno}")
    write("hint:  LOG_LEVEL=debug shows the traceback")


def _requests_json(argv: Sequence[str], environ: Mapping[str, str]) -> bool:
    """Whether JSON lines were requested; the command line may be invalid, and an option overrides the variable."""
    given = [value for name, value in pairwise(argv) if name == "--log-format"]
    given += [argument.removeprefix("--log-format=") for argument in argv if argument.startswith("--log-format=")]
    return (given[-1] if given else environ.get("LOG_FORMAT", "")) == "json"


def _json_writer(argv: Sequence[str], source: SettingsSource) -> WriteText:
    """Write errors as log lines, so that a program which reads stderr gets JSON only."""

    def write(text: str) -> None:
        from windlass.core.log_lines import Level, LogLine  # noqa: PLC0415 - loads the log library
        from windlass.kube.clocks import Clock  # noqa: PLC0415
        from windlass.telemetry.logs import LogOptions, create_logger  # noqa: PLC0415

        action = argv[0] if argv and argv[0] in COMMANDS else ""
        write_line = create_logger(sys.stderr, LogOptions(action), Clock().now, source.redactor.printable)
        with suppress(OSError):
            for line in filter(None, map(str.strip, text.splitlines())):
                write_line(LogLine(Level.ERROR, line))

    return write


def _print_line(line: str) -> None:
    """Print to stderr. Errors are ignored, because the exit code still reports the failure."""
    with suppress(OSError):
        print_text(line, err=True)
