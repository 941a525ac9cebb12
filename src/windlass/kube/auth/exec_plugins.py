"""Credentials from the exec plugin of a kubeconfig, rerun before they expire. Error messages contain no secrets."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import shutil
import signal
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from windlass.errors import InvalidInput
from windlass.kube.api_errors import Unreachable
from windlass.kube.auth import proxies
from windlass.kube.auth.auth_headers import ClientIdentity, bearer_header
from windlass.kube.auth.connections import ClientCertificate, Pem
from windlass.kube.decoding import DecodingError, decode_json
from windlass.kube.redactions import Redactor

if TYPE_CHECKING:
    from asyncio import StreamReader
    from asyncio.subprocess import Process

    from windlass.kube.auth.connections import Connection, ExecPlugin
    from windlass.kube.clocks import Clock

RUN_TIMEOUT = timedelta(seconds=20)  # less than the timeout of a call, so that the error names the plugin
KILL_TIMEOUT = timedelta(seconds=1)  # on a healthy system a killed process exits much sooner
EXPIRY_MARGIN = timedelta(seconds=10)  # so that credentials do not expire while a request is in flight
MAX_OUTPUT_BYTES = 1 << 20  # a token and a certificate chain are a few KiB
MAX_HINT_LENGTH = 300  # characters; some install hints are a page of instructions
STDERR_TAIL_BYTES = 1 << 16  # only the end is shown
STDERR_EXCERPT_LENGTH = 300  # characters; the last lines, not a log


class _ExecCredentialStatus(msgspec.Struct, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: Annotated[datetime, msgspec.Meta(tz=True)] | None = None


class _ExecCredential(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: _ExecCredentialStatus | None = None


_EXEC_CREDENTIAL_DECODER = msgspec.json.Decoder(_ExecCredential)


class ExecPluginCredentials:
    """Runs the plugin when needed; concurrent callers share one run."""

    def __init__(
        self, plugin: ExecPlugin, connection: Connection, clock: Clock, timeout: timedelta = RUN_TIMEOUT
    ) -> None:
        self._plugin = plugin
        self._certificate = connection.tls.client_certificate
        self._environ = {
            **connection.environ,
            **dict(plugin.env),
            "KUBERNETES_EXEC_INFO": _exec_info(plugin, connection),
        }
        self._path = connection.environ.get("PATH", "")
        self._redactor = connection.redactor
        self._clock = clock
        self._timeout = timeout
        self._where = f"exec plugin {Path(plugin.command).name} (kubeconfig {connection.where})"
        self._lock = asyncio.Lock()
        self._identity: ClientIdentity | None = None
        self._expires: datetime | None = None

    async def identity(self) -> ClientIdentity:
        if self._identity is not None and not self._is_expired():
            return self._identity
        async with self._lock:
            if self._identity is not None and not self._is_expired():
                return self._identity
            return await self._refresh()

    async def renew(self, rejected: ClientIdentity) -> bool:
        async with self._lock:
            if self._identity is rejected:
                await self._refresh()
            return self._identity != rejected

    def _is_expired(self) -> bool:
        return self._expires is not None and self._clock.now() >= self._expires - EXPIRY_MARGIN

    async def _refresh(self) -> ClientIdentity:
        status = self._parse_output(await self._run())
        self._identity = self._identity_from(status)
        self._expires = status.expiration_timestamp
        return self._identity

    async def _run(self) -> bytes:
        command = shutil.which(self._plugin.command, path=self._path)
        if command is None:
            raise InvalidInput(
                f"the command {self._plugin.command} is not there, or cannot be executed",
                where=self._plugin.where,
                hint=" ".join(self._plugin.install_hint.split())[:MAX_HINT_LENGTH] or "install it, or correct PATH",
            )
        try:
            process = await asyncio.create_subprocess_exec(
                command,
                *self._plugin.args,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=self._environ,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "a NUL character in its arguments or environment"
            raise InvalidInput(f"the command cannot be started: {reason}", where=self._plugin.where) from None
        return await self._wait_for_output(process)

    async def _wait_for_output(self, process: Process) -> bytes:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            async with asyncio.timeout(self._timeout.total_seconds()), asyncio.TaskGroup() as tasks:
                stdout = tasks.create_task(_read_head(process.stdout))
                stderr = tasks.create_task(_read_tail(process.stderr))
                tasks.create_task(process.wait())
        except TimeoutError:
            await _kill_process_group(process)
            raise self._failure(f"no answer within {self._timeout.total_seconds():g} s; it was killed") from None
        except BaseException:
            await _kill_process_group(process)
            raise
        if process.returncode == 0:
            return stdout.result()
        message = self._excerpt(stderr.result())
        raise self._failure(
            f"failed with exit code {process.returncode}" + (f": {message}" if message else ", saying nothing")
        )

    def _excerpt(self, output: bytes) -> str:
        """The end of the error output on one line, without the credentials and the variables of the plugin."""
        if len(output) == STDERR_TAIL_BYTES:
            output = output.split(None, 1)[-1]  # a secret that was cut in half is not recognized
        hide_variables = Redactor(value for _, value in self._plugin.env)
        text = self._redactor.one_line(hide_variables(output.decode("utf-8", "replace")))
        return text if len(text) <= STDERR_EXCERPT_LENGTH else "…" + text[1 - STDERR_EXCERPT_LENGTH :]

    def _parse_output(self, output: bytes) -> _ExecCredentialStatus:
        try:
            credential = decode_json(output, _EXEC_CREDENTIAL_DECODER)
        except DecodingError:  # the output may hold secrets and must not be quoted
            raise self._failure("its answer is not an ExecCredential in JSON") from None
        if credential.kind != "ExecCredential":
            raise self._failure("its answer is not of the kind ExecCredential")
        if credential.api_version != self._plugin.api_version:
            raise self._failure(f"its response does not have the requested version, {self._plugin.api_version}")
        status = credential.status or _ExecCredentialStatus()
        if bool(status.client_certificate_data) != bool(status.client_key_data):
            raise self._failure("its answer has only one of client certificate and key")
        if not status.token and not status.client_certificate_data:
            raise self._failure("its answer has neither a token nor a client certificate")
        return status

    def _identity_from(self, status: _ExecCredentialStatus) -> ClientIdentity:
        certificate = self._certificate
        if status.client_certificate_data:
            certificate = ClientCertificate(
                Pem(status.client_certificate_data.encode(), self._where),
                Pem(status.client_key_data.encode(), self._where),
            )
        try:
            return ClientIdentity(bearer_header(status.token, self._where) if status.token else "", certificate)
        except InvalidInput as error:
            raise self._failure(error.what) from None

    def _failure(self, what: str) -> Unreachable:
        return Unreachable(what, where=self._where, hint="run it by hand to see what it says", temporary=False)


def _exec_info(plugin: ExecPlugin, connection: Connection) -> str:
    spec: dict[str, Any] = {"interactive": False}
    if plugin.cluster_config is not None:
        tls = connection.tls
        cluster = {
            "server": connection.server,
            "tls-server-name": tls.server_name,
            "insecure-skip-tls-verify": tls.insecure,
            "certificate-authority-data": base64.b64encode(tls.ca_bundle.content).decode() if tls.ca_bundle else "",
            "proxy-url": proxies.url_with_userinfo(connection.proxy) if connection.proxy else "",
            "config": msgspec.json.decode(plugin.cluster_config),
        }
        spec["cluster"] = {name: value for name, value in cluster.items() if value}
    return msgspec.json.encode({"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}).decode()


async def _read_head(stream: StreamReader) -> bytes:
    """The beginning of the output, up to one byte more than allowed.

    The rest is read and dropped, so that the plugin does not block on a full pipe.
    """
    kept = b""
    while chunk := await stream.read(MAX_OUTPUT_BYTES):
        kept = (kept + chunk)[: MAX_OUTPUT_BYTES + 1]
    return kept


async def _read_tail(stream: StreamReader) -> bytes:
    kept = b""
    while chunk := await stream.read(STDERR_TAIL_BYTES):
        kept = (kept + chunk)[-STDERR_TAIL_BYTES:]
    return kept


async def _kill_process_group(process: Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001 - a grandchild in its own session may keep the pipes open
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(KILL_TIMEOUT.total_seconds()):
            await process.wait()
