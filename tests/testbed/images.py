"""Container images from Debian packages and the built programs, in the storage of a registry that the node serves."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from tests.testbed import gobuild, places
from tests.testbed.components import COMPONENTS, Image
from tests.testbed.progress import say, step

if TYPE_CHECKING:
    from collections.abc import Iterator

_SUITE = "bookworm"
_DEBIAN_PACKAGES = (
    *("busybox", "ca-certificates", "git", "git-lfs", "gnupg", "openssh-client", "redis-server", "tini"),
)
_LIBRARIES = (
    "usr/lib/x86_64-linux-gnu/libc.so.6",
    "usr/lib/x86_64-linux-gnu/libresolv.so.2",
    "lib64/ld-linux-x86-64.so.2",
)
_USERS = {"root": 0, "argocd": 999, "nonroot": 65532}
# The sandbox container only has to exist: with a shared PID namespace nobody here has, it would also have to reap.
_PAUSE = Image(references=("pause:1",), base="busybox", entrypoint=("/bin/sleep", "2147483647"))
_BUSYBOX = Image(references=("library/busybox:1", "library/busybox:latest"), base="busybox", command=("sh",))
_RECIPE = 1
"""Counted up when this module makes other images from the same descriptions."""


def registry() -> Path:
    """The storage directory of the registry with all images, or where it will be."""
    parts = [_RECIPE, [asdict(image) for image in _all()], _rootfs().name, sorted(_USERS.items())]
    parts += [gobuild.built(component).name for component in COMPONENTS if component.images]
    return places.cache() / f"registry-{hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]}"


def build() -> None:
    """Build all images."""
    target = registry()
    rootfs = _debian()
    with step("images"), _scratch(target.parent, "images") as work:
        storage = work / "registry"
        storage.mkdir()
        with registry_on_loopback(storage, work) as port:
            builder = _Builder(work, port)
            builder.bases(rootfs)
            for image in _all():
                say(f"  image {image.references[0]}")
                builder.add(image)
        storage.rename(target)


def _all() -> list[Image]:
    return [_PAUSE, _BUSYBOX, *(image for component in COMPONENTS for image in component.images)]


def _rootfs() -> Path:
    digest = hashlib.sha256(json.dumps([_SUITE, _DEBIAN_PACKAGES]).encode()).hexdigest()[:16]
    return places.cache() / f"debian-{digest}.tar"


def _debian() -> Path:
    """A root file system with the packages that the images need."""
    target = _rootfs()
    if target.exists():
        return target
    sources = Path("/etc/apt/sources.list.d/debian.sources")
    mirror = [str(sources)] if sources.exists() else []
    include = f"--include={','.join(_DEBIAN_PACKAGES)}"
    with step("Debian root file system for the images"), _scratch(target.parent, "debian") as work:
        result = work / "root.tar"
        command = ("mmdebstrap", "--quiet", "--variant=minbase", include, _SUITE, str(result), *mirror)
        _run(*command, timeout=900, TMPDIR=str(work))
        result.rename(target)
    return target


@contextlib.contextmanager
def _scratch(parent: Path, name: str) -> Iterator[Path]:
    parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=parent))
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


@contextlib.contextmanager
def registry_on_loopback(storage: Path, work: Path) -> Iterator[int]:
    """A writable registry on the loopback for as long as images are pushed."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
    settings = {
        "version": 0.1,
        "log": {"level": "error"},
        "storage": {"filesystem": {"rootdirectory": str(storage)}},
        "http": {"addr": f"127.0.0.1:{port}"},
    }
    (work / "registry.yaml").write_text(yaml.safe_dump(settings))
    with (work / "registry.log").open("wb") as log:
        process = subprocess.Popen(["docker-registry", "serve", str(work / "registry.yaml")], stdout=log, stderr=log)
    try:
        _wait_for(port, process)
        yield port
    finally:
        process.kill()
        process.wait()


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        time.sleep(0.05)
    raise RuntimeError("docker-registry does not listen")


class _Builder:
    """Buildah with a storage of its own, so that nothing of the user's is touched or kept."""

    def __init__(self, work: Path, port: int) -> None:
        self._work = work
        self._port = port

    def bases(self, rootfs: Path) -> None:
        """The two images that all others start from."""
        container, root = self._begin("scratch")
        _run("tar", "-xf", str(rootfs), "-C", str(root), timeout=300)
        for litter in ("var/lib/apt/lists", "var/cache/apt"):
            shutil.rmtree(root / litter, ignore_errors=True)
        _add_users(root)
        small, small_root = self._begin("scratch")
        _busybox(root, small_root)
        self._commit(container, "debian", "--env", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        self._commit(small, "busybox", "--env", "PATH=/usr/local/bin:/bin")

    def add(self, image: Image) -> None:
        """Build one image and push it under all its names."""
        container, root = self._begin(f"localhost/{image.base}")
        _fill(root, image)
        options = ["--user", image.user, "--workingdir", image.workdir]
        for name, value in image.environment.items():
            options += ["--env", f"{name}={value}"]
        if image.entrypoint:
            options += ["--entrypoint", json.dumps(image.entrypoint)]
        if image.command:
            options += ["--cmd", " ".join(image.command)]
        name = image.references[0].rpartition("/")[2].replace(":", "-")
        self._commit(container, name, *options)
        for reference in image.references:
            target = f"docker://127.0.0.1:{self._port}/{reference}"
            self._buildah("push", "--quiet", "--tls-verify=false", f"localhost/{name}", target)

    def _begin(self, base: str) -> tuple[str, Path]:
        container = self._buildah("from", "--pull-never", base)
        return container, Path(self._buildah("mount", container))

    def _commit(self, container: str, name: str, *options: str) -> None:
        self._buildah("umount", container)
        self._buildah("config", *options, container)
        self._buildah(
            "commit", "--quiet", "--disable-compression", "--format", "oci", "--rm", container, f"localhost/{name}"
        )

    def _buildah(self, *arguments: str) -> str:
        places_of_its_own = ("--root", str(self._work / "storage"), "--runroot", str(self._work / "run"))
        return _run("buildah", *places_of_its_own, "--storage-driver", "overlay", *arguments, timeout=300)


def _add_users(root: Path) -> None:
    for file, line in (("passwd", "{0}:x:{1}:{1}::/home/{0}:/bin/sh\n"), ("group", "{0}:x:{1}:\n")):
        path = root / "etc" / file
        known = path.read_text() if path.exists() else ""
        ids = {entry.split(":")[2] for entry in known.splitlines()}
        added = [line.format(name, number) for name, number in _USERS.items() if str(number) not in ids]
        path.write_text(known + "".join(added))


def _busybox(debian: Path, root: Path) -> None:
    """Debian's busybox with the libraries it needs; the static one cannot resolve names."""
    for directory in (
        "bin",
        "etc",
        "home/nonroot",
        "lib64",
        "root",
        "usr/lib/x86_64-linux-gnu",
        "usr/local/bin",
        "var/run",
    ):
        (root / directory).mkdir(parents=True)
    (root / "tmp").mkdir()
    (root / "tmp").chmod(0o1777)
    (root / "lib").symlink_to("usr/lib")
    shutil.copy(debian / "bin" / "busybox", root / "bin" / "busybox")
    for library in _LIBRARIES:
        shutil.copy((debian / library).resolve() if library.startswith("usr") else _loader(debian), root / library)
    for applet in _run(str(root / "bin" / "busybox"), "--list", timeout=20).split():
        if applet != "busybox":
            (root / "bin" / applet).symlink_to("busybox")
    _add_users(root)


def _loader(debian: Path) -> Path:
    """The dynamic loader: its usual name is an absolute link, which must not be followed out of the tree."""
    return debian / "usr" / "lib" / "x86_64-linux-gnu" / "ld-linux-x86-64.so.2"


def _fill(root: Path, image: Image) -> None:
    by_name = {component.name: component for component in COMPONENTS}
    for path, (owner, mode) in image.directories.items():
        _in(root, path).mkdir(parents=True, exist_ok=True)
        _in(root, path).chmod(mode)
        os.chown(_in(root, path), owner, 0)
    for path, (component, source) in image.copies.items():
        shutil.copyfile(gobuild.built(by_name[component]) / source, _in(root, path))
        _in(root, path).chmod(0o755)
    for path, content in image.scripts.items():
        _in(root, path).write_text(content)
        _in(root, path).chmod(0o755)
    for path, target in image.links.items():
        _in(root, path).parent.mkdir(parents=True, exist_ok=True)
        _in(root, path).unlink(missing_ok=True)
        _in(root, path).symlink_to(target)


def _in(root: Path, path: str) -> Path:
    return root / path.removeprefix("/")


def _run(*command: str, timeout: float, **variables: str) -> str:
    environment = os.environ | {"BUILDAH_ISOLATION": "chroot"} | variables
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment, timeout=timeout)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}\nended with status {done.returncode}:\n{done.stderr[-3000:]}")
    return done.stdout.strip()
