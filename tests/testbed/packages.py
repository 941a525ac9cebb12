"""The Debian packages the test bed runs on: looked for first, installed by name when missing."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGES = (
    "buildah",
    "ca-certificates",
    "containerd",
    "containernetworking-plugins",
    "docker-registry",
    "git",
    "iproute2",
    "iptables",
    "mmdebstrap",
    "mount",
    "openssl",
    "runc",
    "util-linux",
)
_SERVICE_POLICY = Path("/usr/sbin/policy-rc.d")
_NO_SERVICES = "#!/bin/sh\n# While the test bed of windlass installs packages.\nexit 101\n"


def missing() -> list[str]:
    """The packages that are not installed."""
    if shutil.which("dpkg-query") is None:
        return list(PACKAGES)
    shown = subprocess.run(
        ["dpkg-query", "--show", "--showformat=${Package} ${db:Status-Status}\n", *PACKAGES],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    there = {line.split()[0] for line in shown.stdout.splitlines() if line.endswith(" installed")}
    return [name for name in PACKAGES if name not in there]


def install(names: list[str]) -> None:
    """Install by name; services that come with a package are not started."""
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    apt = ["apt-get", "-q", "-o", "DPkg::Lock::Timeout=300", "-o", "Acquire::Retries=3"]
    commands = (
        ["dpkg", "--configure", "--pending"],  # an installation that was interrupted blocks every later one
        [*apt, "update"],
        [*apt, "install", "--yes", "--no-install-recommends", *names],
    )
    with _services_stay_down():
        for command in commands:
            done = subprocess.run(command, check=False, env=environment, capture_output=True, text=True, timeout=900)
            if done.returncode != 0:
                raise RuntimeError(f"{' '.join(command)} failed:\n{(done.stdout + done.stderr)[-2000:]}")


@contextlib.contextmanager
def _services_stay_down() -> Iterator[None]:
    """Debian asks this script before it starts a service; where the machine has one, it decides."""
    if _SERVICE_POLICY.exists() and _SERVICE_POLICY.read_text() != _NO_SERVICES:
        yield
        return
    _SERVICE_POLICY.write_text(_NO_SERVICES)
    _SERVICE_POLICY.chmod(0o755)
    try:
        yield
    finally:
        _SERVICE_POLICY.unlink(missing_ok=True)
