"""Builds the pinned Go programs into the cache, once per set of pins and flags."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.testbed import places
from tests.testbed.progress import say

if TYPE_CHECKING:
    from tests.testbed.components import Component, Program

BUILD_TIMEOUT = 2400.0
_STRIP = "-s -w"


def environment() -> dict[str, str]:
    """The caller's environment with caches of our own and nothing but go.mod and go.sum deciding what is built."""
    caches = places.go_caches()
    return os.environ | {
        "CGO_ENABLED": "0",
        "GOFLAGS": "-buildvcs=false -trimpath -modcacherw",
        "GOWORK": "off",
        "GOMODCACHE": str(caches / "mod"),
        "GOCACHE": str(caches / "build"),
    }


def built(component: Component) -> Path:
    """Where the component's bin/ and files/ are, or will be."""
    return places.cache() / f"{component.name}-{_fingerprint(component)}"


def binary(component: Component, name: str) -> Path:
    """The path of one built program."""
    return built(component) / "bin" / name


def build(component: Component) -> None:
    """Build the component; what has its name is whole, because it is renamed into place."""
    target = built(component)
    target.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f".{component.name}-", dir=target.parent))
    try:
        _compile(component, work / "bin")
        _keep_files(component, work / "files")
        work.chmod(0o755)
        work.rename(target)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _fingerprint(component: Component) -> str:
    digest = hashlib.sha256()
    for name in ("go.mod", "go.sum", "tools.go"):
        digest.update((_pins(component) / name).read_bytes())
    digest.update(
        json.dumps([_link_flags(component), component.files, [p.binary for p in component.programs]]).encode()
    )
    return digest.hexdigest()[:16]


def _pins(component: Component) -> Path:
    return places.SOURCE / "go" / component.name


def _link_flags(component: Component) -> str:
    return " ".join([_STRIP, *(f"-X {name}={value}" for name, value in component.stamps.items())])


def _compile(component: Component, target: Path) -> None:
    target.mkdir()
    packages = [program.package for program in component.programs]
    command = [
        "go",
        "build",
        "-v",
        "-mod=readonly",
        f"-ldflags={_link_flags(component)}",
        "-o",
        f"{target}/",
        *packages,
    ]
    process = subprocess.Popen(
        command,
        cwd=_pins(component),
        env=environment(),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    lines: list[str] = []
    reader = threading.Thread(target=lambda: lines.extend(process.stderr or ()), daemon=True)
    reader.start()
    try:
        _watch(component, process, lines)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        reader.join(timeout=10)
    if process.returncode != 0:
        raise RuntimeError(f"go build of {component.name} failed:\n{''.join(lines[-20:])}")
    for program in component.programs:
        (target / _default_name(program)).rename(target / program.binary)


def _watch(component: Component, process: subprocess.Popen[str], lines: list[str]) -> None:
    begin = time.monotonic()
    while True:
        try:
            process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            elapsed = time.monotonic() - begin
            if elapsed > BUILD_TIMEOUT:
                raise TimeoutError(f"go build of {component.name} took more than {BUILD_TIMEOUT:.0f} s") from None
            say(f"  {component.name} {component.version}: {elapsed:.0f} s, {len(lines)} packages so far")
        else:
            return


def _default_name(program: Program) -> str:
    """The name `go build` gives: the last part of the path that is not a major version."""
    parts = [part for part in program.package.split("/") if not re.fullmatch(r"v\d+", part)]
    return parts[-1]


def _keep_files(component: Component, target: Path) -> None:
    if not component.files:
        return
    shown = subprocess.run(
        ["go", "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", component.module],
        cwd=_pins(component),
        env=environment(),
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    source = Path(shown.stdout.strip())
    for name in component.files:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source / name, target / name)
