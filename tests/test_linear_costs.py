"""The cost of every function that takes text of other programs grows with the text, not with its square.

Two costs are counted, none of them in seconds: the lines of Python that are executed (a loop over the text in a loop
over the text is sixteen times as long for four times the text), and for each regular expression the steps of a
backtracking engine (a pattern that scans ahead in vain, and scans again from the next character, takes the square).
"""

from __future__ import annotations

import ast
import json
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.builders import typed_object
from tests.cli import sample_runs
from tests.kube.pattern_steps import count_steps
from tests.trace_steps import TooManySteps, count_lines
from windlass.argo.cd import application_resources, ownership
from windlass.argo.cd.applications import Application
from windlass.argo.health import assessment, scripts
from windlass.cli.event_receivers import RedactingReceiver
from windlass.cli.plan_files import parse_plan
from windlass.cli.report_output import render_report
from windlass.cli.views.live_rows import render_rows
from windlass.cli.views.live_state import LiveState, apply_event
from windlass.core.platform.drafting import platform_yaml
from windlass.core.platform.gate_values import Reason
from windlass.core.platform.identity import ClusterIdentity, identity_mismatch
from windlass.core.platform.model.annotations import parse_names
from windlass.core.platform.model.node_names import sanitize_name
from windlass.core.platform.reporting import recommendations, redactable_text, run_log
from windlass.errors import WindlassError
from windlass.kube import yaml_documents
from windlass.kube.api_errors import error_from_status, parse_status
from windlass.kube.auth import kubeconfigs
from windlass.kube.client.resources import is_path_segment
from windlass.kube.redactions import SECRET_PATTERNS, Redactor
from windlass.kube.transport.line_splitter import LineSplitter
from windlass.lua.worker_process import ScriptResult
from windlass.printable_text import one_line, printable, printed_text, shortened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SOURCES = Path(__file__).parents[1] / "src/windlass"
QUICK, WHOLE = (5_000, 20_000), (250_000, 1_000_000)
REDACT = Redactor(["correct-horse", "aaaa", "-----BEGIN KEY-----\naaaaaaaaaa\n-----END KEY-----"])
ADVERSARIES = {
    "one letter": "a",
    "spaces": " ",
    "line breaks": "\n",
    "quotes": "\"'",
    "brackets": "[{(",
    "combining": "a\u0301\u0301\u0301\u0301",
    "escapes": "\x1b[0;",
    "titles": "\x1b]0;",
    "titles of 8 bits": "\x9d",
    "wide": "\u4e2d",
    "directions": "\u202e\u2066",
    "secrets": "correct-hors",
    "keys": "-----BEGIN KEY-----",
    "passwords": "password='x token=\"",
    "addresses": "://a:b",
    "hex": "0123456789abcdef012g",
    "commands": "::##vso[",
    "commas": "a,",
    "yaml": "a: &a [*a, ",
    "colons": "a:b/c_",
}


def application(text: str) -> object:
    """Every text of an Application, decoded, parsed and asked for."""
    row = {"group": text, "kind": text, "namespace": text, "name": text, "status": "OutOfSync", "message": text}
    status = {
        "health": {"status": text, "message": text},
        "sync": {"status": text, "revision": text},
        "conditions": [{"type": text, "message": text}],
        "resources": [row],
        "operationState": {"phase": text, "message": text, "startedAt": text, "syncResult": {"resources": [row]}},
        "reconciledAt": text,
    }
    metadata = {"name": text, "resourceVersion": text, "annotations": {"windlass.dev/depends-on": text}}
    spec = {"source": {"repoURL": text, "targetRevision": text}, "project": text}
    item = typed_object({"metadata": metadata, "spec": spec, "status": status}, Application)
    manifest = typed_object({"metadata": metadata, "status": status}, ownership.ApplicationManifest)
    return (
        item.version,
        item.state.comparison_problem,
        item.state.has_mutable_revision,
        ownership.parse_application_manifest(manifest),
        list(application_resources.failed_resources(item)),
    )


def live_view(text: str) -> object:
    state = LiveState("deploy", 0.0, sample_runs.PLATFORM.expected_durations, 4)
    for event in sample_runs.events(text):
        state = apply_event(state, event, 1.0)
    return render_rows(state, 2.0, 40, 120)


def rendered(text: str) -> object:
    report = redactable_text.redact_report(sample_runs.report(text), REDACT.printable)
    return [printed_text(render_report(report, form)) for form in ("text", "json", "junit")]


def logged(text: str) -> object:
    lines = [line for event in sample_runs.events(text) for line in run_log.event_lines(event)]
    return [*lines, *run_log.report_lines(sample_runs.report(text))]


class Sink:
    def emit(self, event: object) -> None:
        repr(event)

    def finish(self, report: object) -> None:
        repr(report)


def redacted_events(text: str) -> object:
    receiver = RedactingReceiver(Sink(), REDACT.printable)
    for event in sample_runs.events(text):
        receiver.emit(event)
    return receiver


def refused(text: str) -> object:
    cause = {"reason": "FieldManagerConflict", "message": f'conflict with "{text}', "field": text}
    status = {"kind": "Status", "reason": text, "message": text, "details": {"name": text, "causes": [cause] * 2}}
    error: Any = error_from_status(parse_status(409, json.dumps(status).encode(), REDACT), "here")
    return str(error), error.owners, parse_status(502, text.encode(errors="replace"), REDACT)


def split_lines(text: str) -> object:
    splitter, content = LineSplitter(), text.encode(errors="replace")
    return [splitter.feed(content[start : start + 512]) for start in range(0, len(content), 512)]


def with_our_error(work: Callable[[bytes], object]) -> Callable[[str], object]:
    def run(text: str) -> object:
        try:
            return work(text.encode(errors="replace"))
        except WindlassError as error:
            return str(error)

    return run


def checked(text: str) -> object:
    item = {"metadata": {}, "apiVersion": text, "kind": text}
    check = scripts.HealthScript("", "a mounted file")
    return assessment._interpret_result(item, check, ScriptResult(REDACT.message(text, 300, 0), text, text))


FUNCTIONS: dict[str, Callable[[str], object]] = {
    "redact": REDACT,
    "redact, printable": REDACT.printable,
    "redact, one line": REDACT.one_line,
    "redact, message": REDACT.message,
    "printable": printable,
    "one line": one_line,
    "shortened": lambda text: shortened(text, 9, 9),
    "printed text": printed_text,
    "path segment": is_path_segment,
    "application": application,
    "live view": live_view,
    "reports": rendered,
    "log": logged,
    "redacted events": redacted_events,
    "status": refused,
    "lines": split_lines,
    "yaml": with_our_error(lambda content: yaml_documents.load(content, "here")),
    "kubeconfig": with_our_error(lambda content: kubeconfigs.load(content, where="here")),
    "plan": with_our_error(lambda content: parse_plan(content, {}, "here")),
    "argocd-cm": lambda text: scripts.parse_config_map(
        {scripts.LEGACY_KEY: text, scripts.HEALTH_KEY_PREFIX + text: text}
    ),
    "health check": checked,
    "names": parse_names,
    "name": sanitize_name,
    "scalar": platform_yaml._scalar,
    "identity": lambda text: identity_mismatch(ClusterIdentity(text, text), ClusterIdentity("a", "b")),
    "advice": lambda text: recommendations.detected_problem(Reason.DEGRADED, [f"  container {text}"]),
}


def adversary(part: str, size: int) -> str:
    return (part * (size // len(part) + 1))[:size]


def check_growth(function: Callable[[str], object], sizes: tuple[int, int]) -> None:
    for name, part in ADVERSARIES.items():
        less, more = (adversary(part, size) for size in sizes)
        function(less)  # what is imported or compiled on first use is not counted
        few = count_lines(partial(function, less))
        most = 1.2 * sizes[1] / sizes[0] * (few + 1_000)
        try:
            count_lines(partial(function, more), most)
        except TooManySteps as error:
            pytest.fail(f"{name}: {few:,} steps for {sizes[0]:,} characters; for {sizes[1]:,} {error}")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_four_times_the_text_takes_four_times_the_steps(name: str) -> None:
    check_growth(FUNCTIONS[name], QUICK)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_megabyte_takes_four_times_the_steps_of_a_quarter(name: str) -> None:
    check_growth(FUNCTIONS[name], WHOLE)


def test_the_count_of_steps_notices_a_square(tmp_path: Path) -> None:
    """Cutting a text to its width one character at a time, and measuring all of it each time."""
    program = tmp_path / "windlass" / "square.py"
    source = "def cut(text):\n    while sum(1 for each in text) > 9:\n        text = text[:-1]\n"
    names: dict[str, Any] = {}
    exec(compile(source, str(program), "exec"), names)
    with pytest.raises(pytest.fail.Exception, match=r"one letter: .* steps"):
        check_growth(names["cut"], (100, 400))


def calls_of_re(source: str) -> Iterator[tuple[ast.Call, bool]]:
    """Each call of a function of `re`, and whether its pattern is tried at the beginning of a text only."""
    tree = ast.parse(source)
    names = {id(node.value): ast.unparse(node.targets[0]) for node in ast.walk(tree) if isinstance(node, ast.Assign)}
    for node in ast.walk(tree):
        function = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
        if isinstance(node, ast.Call) and function.startswith("re."):
            name = names.get(id(node))
            methods = re.findall(rf"\b{name}\.(\w+)\(", source) if name else [function.removeprefix("re.")]
            yield node, bool(methods) and {*methods} <= {"match", "fullmatch"}


def written_patterns() -> Iterator[Any]:
    """Each pattern that stands in the sources as a text."""
    for path in sorted(SOURCES.rglob("*.py")):
        for node, is_anchored in calls_of_re(path.read_text()) if "sandbox" not in path.parts else ():
            if node.args and isinstance(pattern := node.args[0], ast.Constant) and pattern.value:
                text = pattern.value if isinstance(pattern.value, str) else bytes(pattern.value).decode()  # type: ignore[arg-type]
                yield pytest.param(re.compile(rf"\A(?:{text})" if is_anchored else text), id=f"{path.stem} {text[:20]}")


PATTERNS = [
    *written_patterns(),
    *(pytest.param(pattern, id=f"redactions {pattern.pattern[:20]}") for _, pattern, _ in SECRET_PATTERNS),
]


def literal_texts(pattern: re.Pattern[str]) -> list[str]:
    """The words of the pattern itself: what lets it scan far before it fails."""
    words = re.findall(r"[A-Za-z0-9:/@#'\"\[ -]+", pattern.pattern)
    return [*words, "".join(words)]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_steps_of_each_pattern_grow_with_the_text(pattern: re.Pattern[str]) -> None:
    for part in [*ADVERSARIES.values(), *literal_texts(pattern), *".:/-_=+@#0'\""]:
        few, many = (count_steps(pattern, adversary(part, size)) for size in (200, 400))
        assert many <= 2.5 * few + 100, part


def test_the_count_of_steps_notices_a_pattern_that_scans_again() -> None:
    with pytest.raises(AssertionError, match="ALERT"):
        test_the_steps_of_each_pattern_grow_with_the_text(re.compile("ALERT.*(CERTIFICATE|UNKNOWN_CA)"))


def test_every_pattern_is_found() -> None:
    assert len(PATTERNS) > 30
