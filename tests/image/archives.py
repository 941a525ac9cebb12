"""The container image as an archive on disk: its configuration and its files."""

from __future__ import annotations

import hashlib
import json
import tarfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class FileEntry:
    mode: int
    owner: tuple[int, int]
    content: str
    """The digest of a file, or the target of a link."""


@dataclass(frozen=True, slots=True)
class ImageArchive:
    """An OCI archive with one image of one layer that starts from nothing."""

    config: dict[str, Any]
    files: dict[str, FileEntry]
    size: int
    """Bytes of all files."""


def read_archive(path: Path) -> ImageArchive:
    with tarfile.open(path) as archive:

        def blob(digest: str) -> bytes:
            stream = archive.extractfile(f"blobs/{digest.replace(':', '/')}")
            assert stream is not None
            return stream.read()

        index = archive.extractfile("index.json")
        assert index is not None
        manifest = json.loads(blob(json.loads(index.read())["manifests"][0]["digest"]))
        config = json.loads(blob(manifest["config"]["digest"]))
        files: dict[str, FileEntry] = {}
        size = 0
        for layer in manifest["layers"]:
            stream = archive.extractfile(f"blobs/{layer['digest'].replace(':', '/')}")
            with tarfile.open(fileobj=stream) as tree:
                for member in tree:
                    content = member.linkname
                    if member.isfile():
                        data = tree.extractfile(member)
                        assert data is not None
                        content = hashlib.sha256(data.read()).hexdigest()
                        size += member.size
                    files[member.name.rstrip("/")] = FileEntry(member.mode, (member.uid, member.gid), content)
    return ImageArchive(config["config"], files, size)
