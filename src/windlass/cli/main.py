"""The command line interface: every command, and `main`, which turns errors into messages and an exit code.

Each command imports its implementation when it runs, so that `--help` and a mistyped command do not wait for an HTTP
library to load.
"""

from __future__ import annotations

import errno
import sys
import traceback
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from windlass import __version__
from windlass.cli.options import FILE_SETTINGS, command_with_options, option_values, setting_options
from windlass.errors import ExitCode, WindlassError
from windlass.settings.requirements import ACTIONS
from windlass.settings.variables import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


TELEMETRY_SETTINGS = (
    *("log-level", "log-format", "metrics-port", "metrics-address", "metrics-file", "pushgateway"),
    *("trace-id", "span-id", "traceparent"),
)
"""Settings of logs, metrics and traces."""
ADVISED_COMMANDS = frozenset({"deploy", "validate", "teardown", "plan", "import", "wait"})
"""Commands whose errors come with a recommended next command.

These start from settings and a cluster. The other commands are what a recommendation tells the user to run.
"""


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, message="%(prog)s %(version)s")
def windlass() -> None:
    """Raises, checks and lowers a whole Kubernetes platform.

    Exit codes: 0 success, 1 failure, 2 partly done, 3 invalid configuration or arguments, 4 out of time.
    """


@windlass.command()
@click.option(
    "--kubeconfig", metavar="FILE", help="Kubeconfig file.  [KUBECONFIG_PATH, or its content in KUBECONFIG_DATA]"
)
@click.option("--context", metavar="NAME", help="Context in it, if not its current one.")
@click.option("--in-cluster", is_flag=True, help="Use the service account of the pod this runs in.")
@click.pass_obj
def cluster(environ: Mapping[str, str], /, **options: Any) -> None:
    """Show what a kubeconfig leads to: server, identity, APIs, Argo CD Applications. Reads only."""
    from windlass.cli.commands import cluster as clusters  # noqa: PLC0415 - imported lazily, see above
    from windlass.cli.connections import KubeconfigSource  # noqa: PLC0415

    for line in clusters.describe(KubeconfigSource(**options), environ):
        click.echo(line)


@windlass.command()
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port on 127.0.0.1; a free one unless told.")
@click.option(
    "--kubeconfig",
    metavar="FILE",
    default="windlass-sandbox.kubeconfig",
    show_default=True,
    help="Where to write the kubeconfig; removed at the end.",
)
@click.option("--speed", type=click.FloatRange(0.01, 1000), default=1.0, help="How much faster time runs inside.")
@click.option("--tls", is_flag=True, help="Serve HTTPS with a throw-away certificate.")
def sandbox(**options: Any) -> None:
    """Serve an embedded cluster on 127.0.0.1 until interrupted; it forgets everything at its end.

    It has actors that behave like the controllers of Kubernetes and like Argo CD.
    """
    from windlass.cli.commands import sandbox as sandboxes  # noqa: PLC0415 - imported lazily, see above

    sandboxes.serve_sandbox(sandboxes.SandboxOptions(**options), click.echo)


report_format = click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "junit"]),
    default="text",
    show_default=True,
    help="Of the report.",
)


@windlass.command()
@setting_options("kubeconfig", "context", "in-cluster", "environment", "scope", "timeout")
@setting_options("dag", "environment-file", "health-checks", "secrets", *TELEMETRY_SETTINGS)
@click.option("--all", "all_", is_flag=True, help="Every Application of the cluster; no platform file is read.")
@click.option("--strict", is_flag=True, help="Compliance findings end in 2.")
@report_format
@click.pass_obj
def validate(environ: Mapping[str, str], /, form: str, **options: Any) -> int:
    """Tell whether the platform is healthy, on evidence, and keeps its rules. Reads only.

    Exit codes: 0 all is healthy, 1 something critical is not or nothing is, 2 something else is not, 4 out of time.
    """
    from windlass.cli.commands import validate as validating  # noqa: PLC0415

    report = validating.run_validate(options, environ)
    click.echo(validating.render_report(report, form))
    return report.summary.exit_code


@windlass.command()
@setting_options("kubeconfig", "context", "in-cluster", "environment", "scope", "dry-run", "timeout")
@setting_options("dag", "environment-file", "health-checks", "secrets", *TELEMETRY_SETTINGS)
@report_format
@click.option("--plan", metavar="FILE", help="Do exactly what this plan says, or refuse because the cluster has moved.")
@click.pass_obj
def deploy(environ: Mapping[str, str], /, form: str, plan: str | None, **options: Any) -> int:
    """Raise the platform: every application in order, each behind its health gate. What is right is not touched.

    Run it again after a failure: it goes on from where it was. The report goes to stdout, the log to stderr.

    Exit codes: 0 all is healthy, 1 nothing is or the run could not begin, 2 something failed, 4 out of time.
    """
    from windlass.cli.commands import deploy as deploying  # noqa: PLC0415
    from windlass.cli.commands import validate as validating  # noqa: PLC0415

    report = deploying.run_deploy(options, environ, plan)
    click.echo(validating.render_report(report, form))
    return report.summary.exit_code


@windlass.command()
@setting_options("kubeconfig", "context", "in-cluster", "environment", "scope", "timeout")
@setting_options("dag", "environment-file", "health-checks", "secrets", "pv-policy", *TELEMETRY_SETTINGS)
@click.option(
    "--action", type=click.Choice(["deploy", "teardown"]), default="deploy", show_default=True, help="What to plan."
)
@click.option("--out", metavar="FILE", help="Also write the plan here, for `deploy --plan`.")
@report_format
@click.pass_obj
def plan(environ: Mapping[str, str], /, action: str, out: str | None, form: str, **options: Any) -> int:
    """Show what would be done, in which order, why, and how long it would take. Reads only.

    Exit codes: 0 it could be done, 1 something outside the scope stands in the way.
    """
    from windlass.cli.commands import plan as plan_files  # noqa: PLC0415
    from windlass.cli.commands import validate as validating  # noqa: PLC0415

    report = plan_files.run_plan(options, environ, action, out)
    click.echo(validating.render_report(report, form))
    return report.summary.exit_code


@windlass.command()
@setting_options("kubeconfig", "context", "in-cluster", "environment", "scope", "confirm", "pv-policy", "dry-run")
@setting_options("timeout", "dag", "environment-file", "health-checks", "secrets", *TELEMETRY_SETTINGS)
@report_format
@click.pass_obj
def teardown(environ: Mapping[str, str], /, form: str, **options: Any) -> int:
    """Lower the platform: every application in reverse order, each only after all that depends on it is gone.

    It must be confirmed with the name of the environment. Data is kept unless --pv-policy says otherwise.

    Exit codes: 0 nothing is left, 1 something could not be removed or the run could not begin, 2 all is removed and
    something was left behind, 4 out of time.
    """
    from windlass.cli.commands import teardown as tearing_down  # noqa: PLC0415
    from windlass.cli.commands import validate as validating  # noqa: PLC0415

    report = tearing_down.run_teardown(options, environ)
    click.echo(validating.render_report(report, form))
    return report.summary.exit_code


@windlass.command()
@click.argument("application", metavar="[NAMESPACE/]APP")
@setting_options("kubeconfig", "context", "in-cluster", "timeout")
@click.option(
    "--revision",
    multiple=True,
    metavar="REVISION",
    help="Commit or chart version it must be at; of several sources, that of one, or one for each.",
)
@click.pass_obj
def wait(environ: Mapping[str, str], /, application: str, **options: Any) -> int:
    """Wait until an Application is in sync and has shown fresh health. Reads only; no platform file is needed.

    Exit codes: 0 healthy, 1 it failed, 4 out of time.
    """
    from windlass.cli.commands import validate as validating  # noqa: PLC0415

    message, code = validating.run_wait(application, options, environ, lambda line: click.echo(line, err=True))
    click.echo(message)
    return code


@windlass.command("import")
@setting_options("kubeconfig", "context", "in-cluster", "timeout")
@click.option("--out", metavar="FILE", help="Where to write it, instead of to the output.")
@click.option("--force", is_flag=True, help="Replace FILE if it is there.")
@click.pass_obj
def import_(environ: Mapping[str, str], /, **options: Any) -> None:
    """Write a platform file from a live Argo CD. Reads only.

    Stacks come from parents, ApplicationSets and projects, order from sync waves, RollingSync steps and the annotation
    windlass.dev/depends-on. Comments say where each dependency came from: read it before you use it.
    """
    from windlass.cli.commands import import_ as importing  # noqa: PLC0415

    text = importing.run_import(options, environ, lambda line: click.echo(line, err=True))
    if text:
        click.echo(text, nl=False)


@windlass.command()
@setting_options(*FILE_SETTINGS)
@click.pass_obj
def lint(environ: Mapping[str, str], /, **options: Any) -> None:
    """Check the platform file and the environment file; no cluster is needed. Mistakes end in 3."""
    from windlass.cli.commands import lint as linting  # noqa: PLC0415
    from windlass.settings.loader import Inputs, load  # noqa: PLC0415

    for line in linting.lint_report(load(Inputs(option_values(options), environ))):
        click.echo(line)


@windlass.command()
@setting_options("dag", "scope")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "mermaid", "dot", "svg"]),
    default="text",
    show_default=True,
    help="Of the output.",
)
@click.pass_obj
def graph(environ: Mapping[str, str], /, form: str, **options: Any) -> None:
    """Show what waits for what: waves as text, or the graph as mermaid, dot or svg."""
    from windlass.cli.views import graph as graph_views  # noqa: PLC0415
    from windlass.settings.loader import Inputs, load  # noqa: PLC0415

    settings = load(Inputs(option_values(options), environ))
    click.echo(graph_views.FORMATS[form](graph_views.graph_view(settings.definition.platform, settings.scope)))


@windlass.command()
@setting_options("dag", "scope", "environment-file", "timeout")
@click.option("--fail", multiple=True, metavar="APP", help="Let this one fail; may be given several times.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of all chance.")
@click.option(
    "--spread",
    type=click.IntRange(0, 100),
    default=0,
    metavar="PERCENT",
    help="Let each take up to so much shorter or longer than expected.",
)
@click.option("--faults", is_flag=True, help="On a bad day: slow and refused calls, cut watches, untrue health.")
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Of the output."
)
@click.pass_obj
def rehearse(environ: Mapping[str, str], /, form: str, **options: Any) -> int:
    """Deploy the platform file in simulation: order, time, critical path, and what each failure would hold back.

    No cluster is needed or touched: stand-ins become ready after the time that the file expects.

    Exit codes: 0 it went as asked, with what --fail names failing; 1 something else did not become healthy.
    """
    from windlass.cli.commands import rehearse as rehearsing  # noqa: PLC0415
    from windlass.cli.views import rehearsal as rehearsal_views  # noqa: PLC0415

    rehearsal = rehearsing.run_rehearsal(options, environ)
    click.echo(rehearsal_views.document(rehearsal) if form == "json" else rehearsal_views.text(rehearsal))
    return rehearsal.exit_code


@windlass.command()
@click.option("--out", default="windlass-demo", show_default=True, metavar="DIRECTORY", help="For files and reports.")
@click.pass_obj
def demo(environ: Mapping[str, str], /, out: str) -> None:
    """Show a platform's life in a minute, on a sandbox of its own; every command is one that you could type.

    Exit codes: 0 each chapter did what it says, 1 one did not.
    """
    from pathlib import Path  # noqa: PLC0415

    from windlass.cli.commands import demo as demonstrating  # noqa: PLC0415

    demonstrating.run_demo(Path(out), environ, click.echo)


@windlass.command()
@setting_options(*(setting.name for setting in SETTINGS if setting.option))
@click.option("--for", "action", type=click.Choice(ACTIONS), help="Also require what this action needs.")
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Of the output."
)
@click.pass_obj
def config(environ: Mapping[str, str], /, action: str | None, form: str, **options: Any) -> None:
    """Show every effective value and where it came from; secrets are masked."""
    from windlass.cli.views import settings as settings_views  # noqa: PLC0415
    from windlass.settings.loader import Inputs, load  # noqa: PLC0415

    settings = load(Inputs(option_values(options), environ, is_terminal=sys.stderr.isatty()), action or "")
    click.echo(settings_views.document(settings) if form == "json" else settings_views.text(settings))


def main(argv: Sequence[str], environ: Mapping[str, str]) -> int:
    try:
        result = windlass.main(list(argv), prog_name="windlass", standalone_mode=False, obj=environ)
    except click.ClickException as error:
        with suppress(OSError):
            error.show()
        return ExitCode.INVALID
    except WindlassError as error:
        options = _command_line_options(argv)
        _print_error(error, options)
        if error.recommendation_key and ADVISED_COMMANDS.intersection(argv[:1]):
            _print_recommendation(error.recommendation_key, options)
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        _print_line("interrupted")
        return ExitCode.FAILURE
    except BrokenPipeError:
        return ExitCode.FAILURE  # the reader of stdout is gone: there is nowhere to print an error
    except Exception as error:  # noqa: BLE001 - last resort: report a bug in one line instead of a traceback
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            _print_line(f"error: the output cannot be written: {error.strerror}")
        else:
            _print_bug(error, debug=environ.get("LOG_LEVEL") == "debug")
        return ExitCode.FAILURE
    return result if isinstance(result, int) else ExitCode.SUCCESS


def _command_line_options(argv: Sequence[str]) -> Mapping[str, str | None]:
    """Parse the options of the command line again and return them by setting name."""
    command = windlass.commands[argv[0]]
    return option_values(command.make_context(argv[0], list(argv[1:]), resilient_parsing=True).params)


def _print_error(error: WindlassError, options: Mapping[str, str | None]) -> None:
    _print_line(f"error: {error.what}")
    if error.where:
        _print_line(f"where: {error.where}")
    if error.hint:
        _print_line(f"hint:  {command_with_options(error.hint, options)}")


def _print_recommendation(key: str, options: Mapping[str, str | None]) -> None:
    from windlass.core.platform.reporting.recommendations import RunProblem, recommendation_for  # noqa: PLC0415 - lazy import

    recommendation = recommendation_for(RunProblem(key))
    _print_line(f"next:  {recommendation.sentence}\n       $ {command_with_options(recommendation.command, options)}")


def _print_bug(error: Exception, *, debug: bool) -> None:
    """Print the type and the location of the exception, not its message, which may contain secrets."""
    if debug:
        traceback.print_exception(error)
    frame = traceback.extract_tb(error.__traceback__)[-1]
    _print_line(f"error: this is a bug in windlass: {type(error).__name__} in {frame.name}, line {frame.lineno}")
    _print_line("hint:  LOG_LEVEL=debug shows the traceback")


def _print_line(line: str) -> None:
    """Print to stderr. Errors are ignored, because the exit code still reports the failure."""
    with suppress(OSError):
        click.echo(line, err=True)
