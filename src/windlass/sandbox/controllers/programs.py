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

from windlass.sandbox.apiserver.access.authentication import AUDIENCE
from windlass.sandbox.controllers.behaviours import FIRST_BACKOFF, LAST_BACKOFF, SHOWN, Behaviour, State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windlass.sandbox.apiserver.wire.api_status import Body
    from windlass.sandbox.sandbox import Sandbox

TERMINATED = 143  # exit code of a process that SIGTERM ended
HOLDERS = {"configMap": "configmaps", "secret": "secrets"}
VARIABLE = re.compile(r"\$\((\w+)\)")


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


class Unready(Exception):
    """A ConfigMap, Secret, key or ServiceAccount that a container needs does not exist."""


@dataclass(slots=True)
class Run:
    """One run of a program; times are ages of its pod in seconds."""

    since: float
    task: asyncio.Task[None] | None = None
    ended: float | None = None
    code: int = 0

    @property
    def told(self) -> tuple[float, float, int]:
        return self.since, self.ended or self.since, self.code


class Programs:
    """Programs by image pattern, and their runs."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.by_image: dict[str, Program] = {}
        self._sandbox = sandbox
        self._runs: dict[tuple[str, str], list[Run]] = {}
        """By uid of the pod and name of the container."""

    def state_of(
        self, pod: Body, container: Body, behaviour: Behaviour, age: Callable[[], float], wake: Callable[[], None]
    ) -> tuple[Behaviour, State] | None:
        """State of a container whose image has a program, started if it is due; `None` if it has no program."""
        program = next((p for image, p in self.by_image.items() if fnmatchcase(container["image"], image)), None)
        if program is None:
            return None
        now, policy = age(), pod["spec"].get("restartPolicy", "Always")
        if now < behaviour.starts_after:
            return behaviour, State("waiting", 0.0, behaviour.starts_after, "ContainerCreating")
        runs = self._runs.setdefault((pod["metadata"]["uid"], container["name"]), [])
        state = _state(runs, behaviour, policy, now)
        if state is None:
            try:
                process = self._process(pod, container)
            except Unready:
                return behaviour, State("waiting", now, now + FIRST_BACKOFF, "CreateContainerConfigError")
            runs.append(run := Run(now))
            run.task = self._sandbox.start(self._play(program, process, run, age, wake), name=container["image"])
            state = _state(runs, behaviour, policy, now)
            assert state is not None
        return replace(behaviour, exit_code=runs[-1].code, fails_with=""), state

    async def _play(
        self, program: Program, process: Process, run: Run, age: Callable[[], float], wake: Callable[[], None]
    ) -> None:
        try:
            run.code = await program(process)
        except asyncio.CancelledError:
            run.code = TERMINATED
            raise
        except Exception as error:  # noqa: BLE001 - an exception in a program only fails its container
            process.log(f"{type(error).__name__}: {error}")
            run.code = 1
        finally:
            run.ended = age()
            wake()

    def stop(self, uid: str) -> bool:
        """Cancel the programs of a pod; return whether any is still running."""
        tasks = [run.task for (pod, _), runs in self._runs.items() if pod == uid for run in runs]
        running = [task for task in tasks if task is not None and not task.done()]
        for task in running:
            if not task.cancelling():
                task.cancel()
        return bool(running)

    def sweep(self) -> None:
        """Cancel and forget the programs of pods that no longer exist."""
        for uid, name in [key for key in self._runs if self._sandbox.server.store.by_uid(key[0]) is None]:
            self.stop(uid)
            del self._runs[uid, name]

    def _process(self, pod: Body, container: Body) -> Process:
        meta, spec, calls = pod["metadata"], pod["spec"], self._sandbox.caller()
        env = dict(self._environment(pod, container))
        words = [*(container.get("command") or ()), *(container.get("args") or ())]
        argv = tuple(VARIABLE.sub(lambda found: env.get(found[1], found[0]), word) for word in words)
        asked = {"audiences": [AUDIENCE], "boundObjectRef": {"kind": "Pod", "name": meta["name"], "uid": meta["uid"]}}

        def token() -> str:
            store = self._sandbox.server.store
            account = store.get("serviceaccounts", meta["namespace"], spec["serviceAccountName"])
            if account is None:
                raise Unready(spec["serviceAccountName"])
            return str(self._sandbox.server.identities.service_account_token(account, asked)["token"])

        def log(line: str) -> None:
            calls.write_log(meta["namespace"], meta["name"], container["name"], f"{line}\n")

        return Process(argv, env, token, log)

    def _environment(self, pod: Body, container: Body) -> Iterator[tuple[str, str]]:
        for row in container.get("envFrom") or ():
            for kind, reference in ((kind, row[f"{name}Ref"]) for name, kind in HOLDERS.items() if f"{name}Ref" in row):
                found = self._data(pod, kind, reference)
                yield from ((row.get("prefix", "") + name, value) for name, value in found.items())
        for row in container.get("env") or ():
            value = self._value(pod, row)
            if value is not None:
                yield row["name"], value

    def _value(self, pod: Body, row: Body) -> str | None:
        given = row.get("valueFrom") or {}
        if "fieldRef" in given:
            return _field(pod, given["fieldRef"]["fieldPath"])
        for name, kind in HOLDERS.items():
            if reference := given.get(f"{name}KeyRef"):
                found = self._data(pod, kind, reference).get(reference["key"])
                if found is None and not reference.get("optional"):
                    raise Unready(row["name"])
                return found
        return str(row.get("value", ""))

    def _data(self, pod: Body, kind: str, reference: Body) -> dict[str, str]:
        found = self._sandbox.server.store.get(kind, pod["metadata"]["namespace"], reference["name"])
        if found is None:
            if reference.get("optional"):
                return {}
            raise Unready(reference["name"])
        data = found.body.get("data") or {}
        plain = {name: base64.b64decode(text).decode() for name, text in data.items()} if kind == "secrets" else data
        return dict(plain)


def _field(pod: Body, path: str) -> str:
    found: Any = pod
    for name in path.split("."):
        found = found.get(name) if isinstance(found, dict) else None
    return "" if found is None else str(found)


def _state(runs: list[Run], behaviour: Behaviour, policy: str, age: float) -> State | None:
    """Container state from its runs; `None` if another run is due."""
    if not runs:
        return None
    run, restarts = runs[-1], len(runs) - 1
    last = runs[-2].told if restarts else None
    if run.ended is None:
        ready_from = run.since + behaviour.ready_after
        until = ready_from if age < ready_from else inf
        return State("running", run.since, until, "", age >= ready_from, restarts, run.since, last)
    ends = policy == "Never" or (policy == "OnFailure" and not run.code)
    if ends or age < run.ended + SHOWN:
        reason = "Error" if run.code else "Completed"
        return State(
            "terminated", run.ended, inf if ends else run.ended + SHOWN, reason, False, restarts, run.since, last
        )
    again = run.ended + SHOWN + (min(LAST_BACKOFF, FIRST_BACKOFF * 2 ** (restarts - 1)) if restarts else 0.0)
    if age < again:
        return State("waiting", run.ended + SHOWN, again, "CrashLoopBackOff", False, restarts, run.since, run.told)
    return None
