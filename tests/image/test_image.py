"""The container image: what is in it, and that it runs as a container runtime runs it. `make image-test` runs this."""

from __future__ import annotations

import json
import stat
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.request import urlopen

import pytest

from tests.image.archives import read_archive
from tests.testbed.images import registry_on_loopback
from windlass import __version__

if TYPE_CHECKING:
    from tests.image.archives import ImageArchive

ROOT = Path(__file__).parents[2]
ARCHIVE = ROOT / "dist" / "windlass-image.tar"
MAX_SIZE = 150_000_000
FORBIDDEN = ("apt", "bash", "cc", "dash", "dpkg", "gcc", "git", "make", "perl", "pip", "pip3", "sh")
"""Shells, build tools and package managers."""


@pytest.fixture(scope="module")
def image() -> ImageArchive:
    return read_archive(ARCHIVE)


def run(*arguments: str, archive: Path = ARCHIVE) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [ROOT / "image" / "run", archive, *arguments], capture_output=True, text=True, timeout=300, check=False
    )


def test_the_image_is_small_and_has_no_shell_and_no_package_manager(image: ImageArchive) -> None:
    assert image.size <= MAX_SIZE
    programs = {path.rpartition("/")[2] for path in image.files if "/bin/" in f"/{path}" or "/sbin/" in f"/{path}"}
    assert {"windlass", "python3.11", "openssl"} <= programs
    assert not programs & set(FORBIDDEN)
    assert not [path for path in image.files if "/pip/" in path or "/setuptools/" in path]


def test_the_image_runs_as_another_user_than_root_and_says_what_it_is(image: ImageArchive) -> None:
    config = image.config
    assert (config["User"], config["Entrypoint"]) == ("65532:65532", ["/usr/bin/windlass"])
    labels = {name.removeprefix("org.opencontainers.image."): value for name, value in config["Labels"].items()}
    assert (labels["title"], labels["version"], labels["licenses"]) == ("windlass", __version__, "Apache-2.0")
    assert len(labels["revision"]) == 40
    files = {path: entry.mode for path, entry in image.files.items() if not stat.S_ISLNK(entry.mode)}
    assert [path for path, mode in files.items() if mode & 0o6002] == ["tmp"]


def test_the_image_runs_with_a_root_file_system_that_is_read_only() -> None:
    ended = run("--version")
    assert (ended.returncode, ended.stdout) == (0, f"windlass {__version__}\n"), ended.stderr
    ended = run("deploy")
    assert ended.returncode == 3, ended.stderr
    assert "error:" in ended.stderr


def test_the_compiled_modules_load_in_the_image() -> None:
    """A rehearsal uses all of them: HTTP, YAML, JSON, validation."""
    ended = run("rehearse", "--fail", "vault", "--format", "json")
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["exitCode"] == 2


def test_a_container_file_gives_the_same_files(image: ImageArchive, tmp_path: Path) -> None:
    """Built as docker or podman would, on a base image that is made here instead of downloaded."""
    other = tmp_path / "other.tar"
    program = ROOT / "tests" / "image" / "build-containerfile"
    built = subprocess.run([program, other], capture_output=True, text=True, timeout=900, check=False)
    assert built.returncode == 0, built.stdout[-3000:] + built.stderr[-3000:]
    found = read_archive(other)
    differing = {
        path for path in image.files.keys() | found.files.keys() if image.files.get(path) != found.files.get(path)
    }
    assert not differing
    ignored = {"Labels"}  # version and revision are given by `make image`
    assert {k: v for k, v in found.config.items() if k not in ignored} == {
        k: v for k, v in image.config.items() if k not in ignored
    }


def test_the_image_can_be_pushed_to_a_registry(tmp_path: Path) -> None:
    (tmp_path / "storage").mkdir()
    with registry_on_loopback(tmp_path / "storage", tmp_path) as port:
        address = f"127.0.0.1:{port}"
        pushed = subprocess.run(
            [ROOT / "image" / "push", ARCHIVE, f"{address}/platform"], capture_output=True, text=True, check=False
        )
        assert (pushed.returncode, pushed.stdout.strip()) == (0, f"{address}/platform/windlass:{__version__}")
        with urlopen(f"http://{address}/v2/platform/windlass/tags/list") as answer:
            assert json.load(answer)["tags"] == [__version__]
