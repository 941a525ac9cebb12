"""Containers that run a Python program in this process, with the token of their pod's ServiceAccount.

The caller registers programs by image; the sandbox has none of its own.
"""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from math import inf
from typing import TYPE_CHECKING, Any

from windlass.sandbox.apiserver.access.authentication import API_AUDIENCE
from windlass.sandbox.controllers.behaviours import (
    INITIAL_BACKOFF,
    MAX_BACKOFF,
    TERMINATED_FOR,
    Behaviour,
    ContainerState,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windlass.sandbox.apiserver.wire.api_status import Body
    from windlass.sandbox.sandbox import Sandbox

SIGTERM_EXIT_CODE = 143  # exit code of a process that SIGTERM ended
ENV_SOURCES = {"configMap": "configmaps", "secret": "secrets"}
VARIABLE_REFERENCE = re.compile(r"\$\((\w+)\)")


@dataclass(frozen=True, slots=True)
class Process:
    """Arguments, environment and token of a program. Its task is cancelled to stop it."""

    argv: tuple[str, ...]
    """Command and arguments of the container; only the arguments if the command is the image's entrypoint."""
    env: Mapping[str, str]
    token: Callable[[], str]
    """Issues a token of the pod's ServiceAccount; each call returns a fresh one, as the kubelet rotates tokens."""
    log: Callable[[str], None]
    """Appends a line to the container's log."""


Program = Callable[[Process], Awaitable[int]]
"""Returns the exit code."""


class ContainerConfigError(Exception):
    """A ConfigMap, Secret, key or ServiceAccount that a container needs does not exist."""


@dataclass(slots=True)
class ProgramRun:
    """One run of a program; times are ages of its pod in seconds."""

    started: float
    task: asyncio.Task[None] | None = None
    ended: float | None = None
    exit_code: int = 0

    @property
    def summary(self) -> tuple[float, float, int]:
        return self.started, self.ended or self.started, self.exit_code


class Programs:
    """Programs by image pattern, and their runs."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.by_image: dict[str, Program] = {}
        self._sandbox = sandbox
        self._runs: dict[tuple[str, str], list[ProgramRun]] = {}
        """By uid of the pod and name of the container."""

    def container_state(
        self, pod: Body, container: Body, behaviour: Behaviour, age: Callable[[], float], wake: Callable[[], None]
    ) -> tuple[Behaviour, ContainerState] | None:
        """State of a container whose image has a program, started if it is due; `None` if it has no program."""
        program = next((p for image, p in self.by_image.items() if fnmatchcase(container["image"], image)), None)
        if program is None:
            return None
        now, policy = age(), pod["spec"].get("restartPolicy", "Always")
        if now < behaviour.starts_after:
            return behaviour, ContainerState("waiting", 0.0, behaviour.starts_after, "ContainerCreating")
        runs = self._runs.setdefault((pod["metadata"]["uid"], container["name"]), [])
        state = _state_from_runs(runs, behaviour, policy, now)
        if state is None:
            try:
                process = self._build_process(pod, container)
            except ContainerConfigError:
                return behaviour, ContainerState("waiting", now, now + INITIAL_BACKOFF, "CreateContainerConfigError")
            runs.append(run := ProgramRun(now))
            run.task = self._sandbox.start(self._run_program(program, process, run, age, wake), name=container["image"])
            state = _state_from_runs(runs, behaviour, policy, now)
            assert state is not None
        return replace(behaviour, exit_code=runs[-1].exit_code, fails_with=""), state

    async def _run_program(
        self, program: Program, process: Process, run: ProgramRun, age: Callable[[], float], wake: Callable[[], None]
    ) -> None:
        try:
            run.exit_code = await program(process)
        except asyncio.CancelledError:
            run.exit_code = SIGTERM_EXIT_CODE
            raise
        except Exception as error:  # noqa: BLE001 - an exception in a program only fails its container
            process.log(f"{type(error).__name__}: {error}")
            run.exit_code = 1
        finally:
            run.ended = age()
            wake()

    def stop_pod(self, uid: str) -> bool:
        """Cancel the programs of a pod; return whether any is still running."""
        tasks = [run.task for (pod, _), runs in self._runs.items() if pod == uid for run in runs]
        running = [task for task in tasks if task is not None and not task.done()]
        for task in running:
            if not task.cancelling():
                task.cancel()
        return bool(running)

    def stop_deleted_pods(self) -> None:
        """Cancel and forget the programs of pods that no longer exist."""
        for uid, name in [key for key in self._runs if self._sandbox.server.store.by_uid(key[0]) is None]:
            self.stop_pod(uid)
            del self._runs[uid, name]

    def _build_process(self, pod: Body, container: Body) -> Process:
        meta, spec, client = pod["metadata"], pod["spec"], self._sandbox.client()
        env = dict(self._environment(pod, container))
        command = [*(container.get("command") or ()), *(container.get("args") or ())]
        argv = tuple(VARIABLE_REFERENCE.sub(lambda found: env.get(found[1], found[0]), word) for word in command)
        token_request = {
            "audiences": [API_AUDIENCE],
            "boundObjectRef": {"kind": "Pod", "name": meta["name"], "uid": meta["uid"]},
        }

        def token() -> str:
            store = self._sandbox.server.store
            account = store.get("serviceaccounts", meta["namespace"], spec["serviceAccountName"])
            if account is None:
                raise ContainerConfigError(spec["serviceAccountName"])
            return str(self._sandbox.server.authenticator.issue_service_account_token(account, token_request)["token"])

        def log(line: str) -> None:
            client.write_log(meta["namespace"], meta["name"], container["name"], f"{line}\n")

        return Process(argv, env, token, log)

    def _environment(self, pod: Body, container: Body) -> Iterator[tuple[str, str]]:
        for row in container.get("envFrom") or ():
            for kind, reference in (
                (kind, row[f"{name}Ref"]) for name, kind in ENV_SOURCES.items() if f"{name}Ref" in row
            ):
                data = self._config_data(pod, kind, reference)
                yield from ((row.get("prefix", "") + name, value) for name, value in data.items())
        for row in container.get("env") or ():
            value = self._env_value(pod, row)
            if value is not None:
                yield row["name"], value

    def _env_value(self, pod: Body, row: Body) -> str | None:
        value_from = row.get("valueFrom") or {}
        if "fieldRef" in value_from:
            return _pod_field(pod, value_from["fieldRef"]["fieldPath"])
        for name, kind in ENV_SOURCES.items():
            if reference := value_from.get(f"{name}KeyRef"):
                value = self._config_data(pod, kind, reference).get(reference["key"])
                if value is None and not reference.get("optional"):
                    raise ContainerConfigError(row["name"])
                return value
        return str(row.get("value", ""))

    def _config_data(self, pod: Body, kind: str, reference: Body) -> dict[str, str]:
        stored = self._sandbox.server.store.get(kind, pod["metadata"]["namespace"], reference["name"])
        if stored is None:
            if reference.get("optional"):
                return {}
            raise ContainerConfigError(reference["name"])
        data = stored.body.get("data") or {}
        plain = {name: base64.b64decode(text).decode() for name, text in data.items()} if kind == "secrets" else data
        return dict(plain)


def _pod_field(pod: Body, path: str) -> str:
    value: Any = pod
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return "" if value is None else str(value)


def _state_from_runs(runs: list[ProgramRun], behaviour: Behaviour, policy: str, age: float) -> ContainerState | None:
    """Container state from its runs; `None` if another run is due."""
    if not runs:
        return None
    run, restarts = runs[-1], len(runs) - 1
    last_run = runs[-2].summary if restarts else None
    if run.ended is None:
        ready_from = run.started + behaviour.ready_after
        until = ready_from if age < ready_from else inf
        return ContainerState("running", run.started, until, "", age >= ready_from, restarts, run.started, last_run)
    is_final = policy == "Never" or (policy == "OnFailure" and not run.exit_code)
    if is_final or age < run.ended + TERMINATED_FOR:
        reason = "Error" if run.exit_code else "Completed"
        return ContainerState(
            "terminated",
            run.ended,
            inf if is_final else run.ended + TERMINATED_FOR,
            reason,
            False,
            restarts,
            run.started,
            last_run,
        )
    restart_at = (
        run.ended + TERMINATED_FOR + (min(MAX_BACKOFF, INITIAL_BACKOFF * 2 ** (restarts - 1)) if restarts else 0.0)
    )
    if age < restart_at:
        return ContainerState(
            "waiting",
            run.ended + TERMINATED_FOR,
            restart_at,
            "CrashLoopBackOff",
            False,
            restarts,
            run.started,
            run.summary,
        )
    return None
