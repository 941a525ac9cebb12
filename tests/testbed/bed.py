"""The test side of the bed: starts one or attaches to one, and gives tests what they need of it."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from tests.testbed import addresses, gobuild, lock, places
from tests.testbed.components import KUBERNETES
from tests.testbed.warden import START_TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Sequence

_STOP_TIMEOUT = 60.0


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """One request as the API server saw it."""

    user: str
    verb: str
    resource: str
    subresource: str
    namespace: str
    name: str
    code: int
    stage: str
    time: str
    user_agent: str
    uri: str


class GitServer:
    """Bare repositories, published from outside and served inside the node."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def url(self, name: str) -> str:
        """The address for pods."""
        return f"http://{addresses.NODE}:{addresses.GIT_PORT}/{name}.git"

    def path(self, name: str) -> Path:
        """The bare repository, made if it is not there; push to it from anywhere outside the node."""
        bare = self._root / f"{name}.git"
        if not bare.exists():
            _run(["git", "init", "--quiet", "--bare", "--initial-branch=main", str(bare)])
        return bare

    def publish(self, name: str, files: dict[str, str]) -> str:
        """Make the branch `main` hold exactly these files (path to content); answers with the commit."""
        bare = self.path(name)
        tree = self._root / f".{name}"
        shutil.rmtree(tree, ignore_errors=True)
        for path, content in files.items():
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            (tree / path).write_text(content)
        git = ["git", f"--git-dir={bare}", "-c", "user.name=testbed", "-c", "user.email=testbed@testbed.invalid"]
        _run([*git, f"--work-tree={tree}", "add", "--all", "--force", "."], cwd=tree)
        _run([*git, f"--work-tree={tree}", "commit", "--quiet", "--allow-empty", "--message=publish"], cwd=tree)
        shutil.rmtree(tree)
        return _run([*git, "rev-parse", "HEAD"]).strip()


class Cluster:
    """A running bed."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self.kubeconfig = state / "kubeconfig"
        self.logs_dir = state / "log"
        self.git = GitServer(state / "git")
        self.node_pid: int = json.loads((state / "bed.json").read_text())["node"]

    def kubectl(self, *arguments: str, input: str | None = None, timeout: float = 120) -> str:  # noqa: A002 - as subprocess calls it
        """Run the built kubectl and answer with its output; a failure raises with what it said."""
        command = [str(gobuild.binary(KUBERNETES, "kubectl")), f"--kubeconfig={self.kubeconfig}", *arguments]
        return _run(command, content=input, timeout=timeout, env=os.environ | {"HOME": str(self.state)})

    def get(self, *arguments: str) -> dict[str, Any]:
        """`kubectl get ... -o json`."""
        answer: dict[str, Any] = json.loads(self.kubectl("get", *arguments, "--output=json"))
        return answer

    def apply(self, manifest: str, *arguments: str) -> None:
        """Apply a manifest on the server's side."""
        self.kubectl("apply", "--server-side", "--force-conflicts", *arguments, "--filename=-", input=manifest)

    def namespace(self, name: str) -> str:
        """Make a namespace, unless it is there, and wait until pods may be created in it."""
        self.apply(f"{{apiVersion: v1, kind: Namespace, metadata: {{name: {name}}}}}")
        self.wait("serviceaccount/default", "create", f"--namespace={name}")
        return name

    def wait(self, what: str, condition: str, *arguments: str, timeout: float = 120) -> None:
        """`kubectl wait`: `what` is type/name, `condition` what --for takes."""
        self.kubectl("wait", what, f"--for={condition}", f"--timeout={timeout:.0f}s", *arguments, timeout=timeout + 15)

    def audit(self) -> list[AuditRecord]:
        """The request journal: everything the API server answered since it started."""
        lines = (self.state / "audit.log").read_text().splitlines(keepends=True)
        return [_record(json.loads(line)) for line in lines if line.endswith("\n")]

    def node_exec(self, *command: str, timeout: float = 60) -> str:
        """Run a command in all of the node's namespaces."""
        return _run(["nsenter", f"--target={self.node_pid}", *_NAMESPACES, "--", *command], timeout=timeout)

    def collect_logs(self, name: str) -> Path:
        """Copy the logs of everything on the node, and a list of what there was, to where they survive it."""
        target = places.kept_logs(name)
        shutil.copytree(self.logs_dir, target, symlinks=True, ignore_dangling_symlinks=True)
        shutil.copy(self.state / "audit.log", target / "audit.log")
        for file, arguments in (
            ("objects.txt", ("get", "nodes,pods,deployments,statefulsets,jobs,services", "-A", "-o", "wide")),
            ("events.txt", ("get", "events", "-A", "--sort-by=.lastTimestamp")),
        ):
            try:
                (target / file).write_text(self.kubectl(*arguments, "--request-timeout=20s", timeout=30))
            except (RuntimeError, subprocess.TimeoutExpired) as problem:
                (target / file).write_text(str(problem))
        return target


class Bed:
    """A bed that this process owns: it ends when this process ends, at the latest."""

    def __init__(self) -> None:
        self._warden = subprocess.Popen(
            [sys.executable, "-m", "tests.testbed.warden"],
            cwd=places.CHECKOUT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            # Ctrl-C is for the owner; the warden sees the owner end.
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def cluster(self) -> Cluster:
        """Wait until the node is ready."""
        assert self._warden.stdout is not None
        line = _read_line(self._warden.stdout, START_TIMEOUT + 30 + lock.patience())
        if not line:
            self.stop()
            raise RuntimeError(f"the test bed did not start (status {self._warden.returncode}); the reason is above")
        return Cluster(Path(line))

    def wait(self) -> int:
        """Until the bed ends by itself."""
        return self._warden.wait()

    def stop(self) -> None:
        """End it, and wait until every trace is gone."""
        for pipe in (self._warden.stdin, self._warden.stdout):
            if pipe is not None:
                pipe.close()
        try:
            self._warden.wait(_STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            self._warden.kill()
            self._warden.wait()
            raise


_NAMESPACES = ("--net", "--mount", "--pid", "--uts", "--ipc", "--cgroup")


def _read_line(pipe: IO[str], timeout: float) -> str:
    """One line, or nothing when the other side ended or took too long."""
    deadline = time.monotonic() + timeout
    ready = select.select([pipe], [], [], max(0, deadline - time.monotonic()))[0]
    return pipe.readline().strip() if ready else ""


def _record(event: dict[str, Any]) -> AuditRecord:
    target = event.get("objectRef", {})
    return AuditRecord(
        user=event["user"].get("username", ""),
        verb=event["verb"],
        resource=target.get("resource", ""),
        subresource=target.get("subresource", ""),
        namespace=target.get("namespace", ""),
        name=target.get("name", ""),
        code=event.get("responseStatus", {}).get("code", 0),
        stage=event["stage"],
        time=event["requestReceivedTimestamp"],
        user_agent=event.get("userAgent", ""),
        uri=event["requestURI"],
    )


def _run(
    command: Sequence[str],
    *,
    content: str | None = None,
    cwd: Path | None = None,
    env: dict[str, str] | None = None,
    timeout: float = 60,
) -> str:
    done = subprocess.run(
        command, input=content or "", cwd=cwd, env=env, check=False, capture_output=True, text=True, timeout=timeout
    )
    if done.returncode != 0:
        raise RuntimeError(
            f"{' '.join(command)}\nended with status {done.returncode}: {done.stderr.strip()}{done.stdout[-500:]}"
        )
    return done.stdout
