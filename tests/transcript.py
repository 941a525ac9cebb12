"""`make transcript`: runs a first use of Windlass on a sandbox and records it as docs/transcript.md.

A test runs it again and compares: times, ports and commits may differ, everything else is what the product prints.
"""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
import tempfile
import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.processes import inherited, serving
from windlass.cli import demo_files

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCUMENT = Path(__file__).parents[1] / "docs" / "transcript.md"
COLUMNS, ROWS = 100, 40
FOLDER = "/platform"
"""What the transcript shows in place of the directory in which it was recorded."""

STACKS: dict[str, dict[str, tuple[str, ...]]] = {
    "infrastructure": {"certs": (), "dns": (), "csi": ()},
    "security": {"vault": ("csi", "certs"), "sso": ("vault", "dns")},
    "data": {"pg-operator": ("csi",), "pg-main": ("pg-operator",)},
    "messaging": {"kafka": ("csi",)},
    "monitoring": {"metrics": ("csi",), "dashboards": ("metrics", "sso")},
    "apps": {"shop": ("pg-ready", "kafka"), "web": ("shop",), "gitops-ui": ("sso",)},
}
"""Thirteen applications by stack, with their dependencies; `pg-ready`, the fourteenth node, is a StatefulSet."""
STATEFUL = frozenset({"pg-main", "kafka"})
READY = {"name": "pg-ready", "profile": "simple", "dependsOn": ["pg-main"]}
READY_OBJECT = {"apiVersion": "apps/v1", "kind": "StatefulSet", "namespace": "default", "name": "pg-main"}
CHART = "apiVersion: v2\nname: root\nversion: 1.0.0\n"
SERVER = "https://kubernetes.default.svc"

VARYING = (
    (re.compile(r"\b[0-9a-f]{40}\b"), "COMMIT"),
    (re.compile(r"\b[0-9a-f]{12}\b"), "COMMIT"),
    (re.compile(r"127\.0\.0\.1:\d+"), "127.0.0.1:PORT"),
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z"), "TIME"),
    (re.compile(r"\b\d+(\.\d+)? (s|ms|min)\b( \d+ s\b)?"), "DURATION"),
    (re.compile(r"\b\d+ (reads|writes|refreshes)\b"), r"N \1"),
    (re.compile(r"\b\d+ days?\b|\b\d+% "), "N "),
    (re.compile(r"\b[a-z-]+-[a-z0-9]{10}-[a-z0-9]{5}\b"), "POD"),
    (re.compile(r"\s+"), " "),  # a longer number wraps a line elsewhere
)


@dataclass
class Recording:
    """The directory of a user, and what the user saw."""

    folder: Path
    lines: list[str] = field(default_factory=list)

    def say(self, text: str) -> None:
        self.lines += ["", *textwrap.wrap(text, 118), ""]

    def title(self, text: str) -> None:
        self.lines += ["", f"## {text}"]

    def shell(self, command: str, *, expected: int = 0) -> None:
        """Run one command as in a terminal; record what it prints and, unless it is 0, its exit code."""
        code, output = self._run(command)
        if code != expected:
            sys.exit(f"{command} ended with {code}, not {expected}:\n{output}")
        shown = [line.rstrip() for line in output.replace(str(self.folder), FOLDER).splitlines()]
        ending = [f"(exit code {code})"] if code else []
        self.lines += ["```", f"$ {command}", *shown, *ending, "```", ""]

    def _run(self, command: str) -> tuple[int, str]:
        """Standard output is a terminal, standard error is not: the live view would overwrite itself."""
        words = command.split()
        program = [sys.executable, "-m", "windlass"] if words[0] == "windlass" else words[:1]
        environ = {**inherited(), "COLUMNS": str(COLUMNS), "LINES": str(ROWS), **GIT}
        environ |= {"KUBECONFIG_PATH": str(self.folder / "kubeconfig"), "ENVIRONMENT": "staging", "LOG_LEVEL": "error"}
        environ["ARGOCD_AUTH_TOKEN_PATH"] = str(self.folder / demo_files.TOKEN_FILE)
        terminal, end = pty.openpty()
        with tempfile.TemporaryFile("w+") as errors:
            process = subprocess.Popen([*program, *words[1:]], env=environ, cwd=self.folder, stdout=end, stderr=errors)
            os.close(end)
            printed = b"".join(_read(terminal))
            os.close(terminal)
            code = process.wait(300)
            errors.seek(0)
            told = [line for line in errors.read().splitlines() if not line.startswith("{")]
        return code, "\n".join([*_plain(printed.decode()).splitlines(), *told])

    def commit(self, message: str, **manifests: Any) -> None:
        """Commit these files, by path with `__` for a slash; record the command."""
        for name, content in manifests.items():
            path = self.folder / "git" / f"{name.replace('__', '/')}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(content, indent=1))
        self._git("add", "--all")
        self._git("commit", "--quiet", "--message", message)
        self.lines += ["```", f'$ git commit --all --message "{message}" && git push', "```", ""]

    def _git(self, *arguments: str) -> None:
        subprocess.run(["git", "-C", str(self.folder / "git"), *arguments], env={**inherited(), **GIT}, check=True)


GIT = {
    f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in (("NAME", "a"), ("EMAIL", "a@b"))
}


def _read(terminal: int) -> Iterator[bytes]:
    try:
        while part := os.read(terminal, 65536):
            yield part
    except OSError:  # the program has closed it
        return


def _plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r\n", "\n")


def write_platform(folder: Path) -> dict[str, Any]:
    """Write the platform file and the environment file; return the files of the repository."""
    stacks = [
        {
            "name": stack,
            "applications": [
                {"name": name, "profile": "simple", "dependsOn": list(needed)} for name, needed in rows.items()
            ],
        }
        for stack, rows in STACKS.items()
    ]
    stacks[2]["applications"].append({**READY, "resource": READY_OBJECT})  # type: ignore[attr-defined]
    document = {"apiVersion": "windlass.dev/v1alpha1", "kind": "Platform", "metadata": {"name": "shop"}}
    profiles = {"simple": {"sync": "60s", "health": "60s", "degradedGrace": "10s", "expected": "10s"}}
    content = {**document, "spec": {"profiles": profiles, "stacks": stacks}}
    (folder / "platform.yaml").write_text(json.dumps(content, indent=1))
    (folder / "typo.yaml").write_text(json.dumps(content, indent=1).replace('"kafka"\n', '"kafak"\n'))
    environment = {"name": "staging", "domain": "example.org", "gitRepository": str(folder / "git")}
    (folder / "environment.yaml").write_text(
        json.dumps({**environment, "gitRevision": "main", "gitPath": "root", "retries": {"maxAttempts": 1}})
    )
    names = [name for rows in STACKS.values() for name in rows]
    manifests = {f"{name}__all": workload(name) for name in names}
    return manifests | {f"root__templates__{name}": child(name, folder) for name in names}


def workload(name: str, version: int = 1, fault: str = "") -> dict[str, Any]:
    marks = {"sandbox.windlass.dev/ready-after": "4s"}
    marks |= {"sandbox.windlass.dev/fails-with": fault} if fault else {}
    container = {"name": "main", "image": f"registry.example.org/{name}:{version}"}
    labels = {"app": name}
    template = {"metadata": {"labels": labels, "annotations": marks}, "spec": {"containers": [container]}}
    kind = "StatefulSet" if name in STATEFUL else "Deployment"
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "serviceName": name, "template": template}
        if kind == "StatefulSet"
        else {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
    }


def child(name: str, folder: Path) -> dict[str, Any]:
    source = {"repoURL": str(folder / "git"), "path": name, "targetRevision": "{{ .Values.targetRevision }}"}
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {
            "name": name,
            "namespace": "argocd",
            "finalizers": ["resources-finalizer.argocd.argoproj.io"],
        },
        "spec": {"project": "default", "source": source, "destination": {"server": SERVER, "namespace": "default"}},
    }


FILES = "--dag platform.yaml --environment-file environment.yaml"


def record(folder: Path) -> str:
    """The whole document."""
    recording = Recording(folder)
    (folder / "git" / "root").mkdir(parents=True)
    (folder / "git" / "root" / "Chart.yaml").write_text(CHART)
    recording._git("init", "--quiet", "--initial-branch", "main")
    manifests = write_platform(folder)
    with serving(folder / "kubeconfig", "--speed", "20"):
        demo_files.write_token(folder, folder / "kubeconfig")
        _play(recording, manifests)
    return "\n".join([HEAD, *recording.lines]).replace("\n\n\n", "\n\n").rstrip() + "\n"


HEAD = """\
# A first use, recorded

What Windlass prints from the first deploy to the teardown of a platform with 14 nodes in 6 stacks, on a sandbox
(`windlass sandbox --speed 20`). `make transcript` records it; a test fails if Windlass prints something else.
`KUBECONFIG_PATH` names the sandbox, `ENVIRONMENT` is `staging`, `ARGOCD_AUTH_TOKEN_PATH` names a token of Argo CD. The
terminal has 100 columns and 40 rows."""


def _play(recording: Recording, manifests: dict[str, Any]) -> None:
    recording.title("Check the files")
    recording.commit("Add the platform", **manifests)
    recording.shell(f"windlass lint {FILES}")
    recording.shell("windlass lint --dag typo.yaml", expected=3)
    recording.title("Deploy")
    recording.shell(f"windlass plan {FILES}")
    recording.shell(f"windlass deploy {FILES}")
    recording.say("Running it again changes nothing:")
    recording.shell(f"windlass deploy {FILES}")
    recording.shell("windlass status")
    recording.title("Break it")
    recording.say("An image that cannot be pulled:")
    recording.commit("Update vault", vault__all=workload("vault", 2, "ImagePullBackOff"))
    recording.shell(f"windlass plan --refresh --diff {FILES} --out plan.json")
    recording.shell(f"windlass deploy {FILES} --plan plan.json", expected=2)
    recording.shell(f"windlass validate {FILES}", expected=2)
    recording.shell("windlass status", expected=2)
    recording.title("Fix it")
    recording.commit("Fix vault", vault__all=workload("vault", 3))
    recording.shell(f"windlass deploy {FILES}")
    recording.shell(f"windlass validate {FILES}")
    recording.title("Input that is refused")
    recording.shell(f"windlass deploy {FILES} --scope app:valt", expected=3)
    recording.shell(f"windlass teardown {FILES}", expected=3)
    recording.shell(f"windlass deploy {FILES} --environment production", expected=3)
    recording.title("Remove it")
    recording.shell(f"windlass plan --action teardown {FILES}")
    recording.shell(f"windlass teardown {FILES} --confirm staging")
    recording.say("Nothing is left, so there is nothing to do:")
    recording.shell(f"windlass teardown {FILES} --confirm staging")


def comparable(document: str) -> list[str]:
    """Its code blocks and paragraphs, without what differs between two recordings."""
    blocks = document.split("\n\n")
    for pattern, replacement in VARYING:
        blocks = [pattern.sub(replacement, block) for block in blocks]
    return blocks


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        DOCUMENT.write_text(record(Path(place)))
