"""Repositories in memory, in a directory or in git, and the manifests of a source at a commit.

Helm support is minimal: a folder with a Chart.yaml yields its templates with `{{ .Values.name }}` substituted.
`$ARGOCD_APP_REVISION` and `${ARGOCD_APP_REVISION}` become the commit, in parameters and in manifests.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import yaml

from windlass.sandbox.apiserver.wire.yaml import Loader

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from windlass.sandbox.apiserver.wire.api_status import Body

REVISION = re.compile(r"\$\{ARGOCD_APP_REVISION\}|\$ARGOCD_APP_REVISION\b")
VALUE = re.compile(r"\{\{-?\s*\.Values\.([\w.]+)\s*(?:\|\s*quote\s*)?-?\}\}")
SUFFIXES = (".yaml", ".yml", ".json")


class Broken(Exception):
    """An Application cannot be compared: its source yields no manifests, or its project does not permit it."""

    def __init__(self, why: str, *, condition: str = "ComparisonError", told: str = "") -> None:
        super().__init__(why)
        self.condition = condition
        self.told = told or f"{condition}: {why}"
        """Message of an operation that fails for this reason."""


class Repository(Protocol):
    def commit(self, revision: str) -> str:
        """The commit of a branch, a tag or `HEAD`; a commit resolves to itself."""

    def files(self, commit: str) -> Mapping[str, str]:
        """All manifest files at a commit, by path."""


class MemoryRepository:
    """For simulations; each push replaces the whole content."""

    def __init__(self, files: Mapping[str, Any] | None = None) -> None:
        self._commits: dict[str, dict[str, str]] = {}
        self._branches: dict[str, str] = {}
        if files is not None:
            self.push(files)

    def push(self, files: Mapping[str, Any], *, branch: str = "main", version: str = "") -> str:
        """Set the files by path: text, objects or lists of objects. The revision is the given version or a hash."""
        texts = {path: value if isinstance(value, str) else _rendered(value) for path, value in files.items()}
        parent = self._branches.get(branch, "")
        commit = version or hashlib.sha1(f"{parent}{sorted(texts.items())}".encode()).hexdigest()  # noqa: S324 - as git
        self._commits[commit] = texts
        self._branches[branch] = self._branches["HEAD"] = commit
        return commit

    def commit(self, revision: str) -> str:
        found = self._branches.get(revision or "HEAD", revision)
        if found not in self._commits:
            raise Broken(f"unable to resolve '{revision}' to a commit SHA")
        return found

    def files(self, commit: str) -> Mapping[str, str]:
        return self._commits[commit]


class DirectoryRepository:
    """A folder on disk: its revision is a hash of its content, and each revision read is kept."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen: dict[str, dict[str, str]] = {}

    def commit(self, revision: str) -> str:
        if revision in self._seen:
            return revision
        found = sorted(path for path in self._folder.rglob("*") if path.suffix in SUFFIXES)
        texts = {path.relative_to(self._folder).as_posix(): path.read_text() for path in found}
        commit = hashlib.sha1(str(texts).encode()).hexdigest()  # noqa: S324 - as git
        self._seen.setdefault(commit, texts)
        return commit

    def files(self, commit: str) -> Mapping[str, str]:
        return self._seen[commit]


class GitRepository:
    """A local repository, read with the `git` command."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[str, dict[str, str]] = {}

    def commit(self, revision: str) -> str:
        return self._git("rev-parse", "--verify", "--quiet", f"{revision or 'HEAD'}^{{commit}}").strip()

    def files(self, commit: str) -> Mapping[str, str]:
        if commit not in self._read:
            names = self._git("ls-tree", "-r", "-z", "--name-only", commit).split("\0")
            wanted = [name for name in names if name.endswith(SUFFIXES)]
            self._read[commit] = {name: self._git("show", f"{commit}:{name}") for name in wanted}
        return self._read[commit]

    def _git(self, *words: str) -> str:
        command = ["git", "-C", str(self._folder), *words]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - no shell; fixed command
        if ran.returncode:
            raise Broken(f"git {words[0]} {words[-1]}: {ran.stderr.strip() or 'not found'}")
        return ran.stdout


class Repositories(dict[str, Repository]):
    """Repositories by URL; local paths need no entry."""

    def __init__(self) -> None:
        super().__init__()
        self._rendered: dict[tuple[str, bytes], tuple[Mapping[str, str], list[Body]]] = {}

    def at(self, url: str) -> Repository:
        if url not in self:
            folder = Path(url.removeprefix("file://"))
            if not folder.is_absolute() or not folder.is_dir():
                raise Broken(f"failed to list refs: repository not found: {url}")
            is_git = (folder / ".git").exists() or (folder / "HEAD").is_file()
            self[url] = GitRepository(folder) if is_git else DirectoryRepository(folder)
        return self[url]

    def resolved(self, sources: list[Body], revisions: list[str]) -> tuple[list[str], list[Body]]:
        """Commits and manifests of sources, at the given or their own revisions. Raises ComparisonFailure."""
        asked = revisions or [source.get("targetRevision", "") for source in sources]
        found, wanted = [], []
        for number, (source, revision) in enumerate(zip(sources, asked, strict=True), 1):
            try:
                repository = self.at(source["repoURL"])
                found.append(repository.commit(revision))
                if not source.get("ref") or source.get("path") or source.get("chart"):  # else only values files
                    wanted += self._manifests(repository.files(found[-1]), found[-1], source)
            except Broken as broken:
                head = f"Failed to load target state: failed to generate manifest for source {number} of {len(sources)}"
                raise Broken(f"{head}: rpc error: code = Unknown desc = {broken}") from None
        return found, wanted

    def _manifests(self, files: Mapping[str, str], commit: str, source: Body) -> list[Body]:
        """Render once per commit and source; callers share the objects and must not change them."""
        key = (commit, msgspec.json.encode(source))
        known = self._rendered.get(key)
        if known is None or known[0] is not files:  # a chart version may be pushed again
            known = self._rendered[key] = (files, manifests(files, commit, source))
        return known[1]


def manifests(files: Mapping[str, str], commit: str, source: Body) -> list[Body]:
    """The objects of a source at a commit with these files."""
    folder = (source.get("path") or source.get("chart") or ".").strip("/").removeprefix("./")
    prefix = "" if folder in {"", "."} else f"{folder}/"
    inside = {path.removeprefix(prefix): files[path] for path in sorted(files) if path.startswith(prefix)}
    if not inside:
        raise Broken(f"{folder}: app path does not exist")
    if "Chart.yaml" in inside:
        values = _values(inside.get("values.yaml", ""), source.get("helm") or {}, commit)
        inside = {path: _filled(text, values) for path, text in inside.items() if path.startswith("templates/")}
    elif not (source.get("directory") or {}).get("recurse"):
        inside = {path: text for path, text in inside.items() if "/" not in path}
    found = (item for text in inside.values() for item in documents(REVISION.sub(commit, text)))
    return [item for item in found if item]


def documents(text: str) -> Iterator[Body]:
    """The objects in a file: YAML documents, JSON, and the items of a List."""
    try:
        found = [msgspec.json.decode(text)] if text[:1] in {"{", "["} else yaml.load_all(text, Loader)
        for item in found:
            rows = item if isinstance(item, list) else [item]
            for row in rows:
                yield from row["items"] if row and row.get("kind") == "List" else [row]
    except (yaml.YAMLError, msgspec.DecodeError, AttributeError) as error:
        raise Broken(f"failed to unmarshal manifest: {error}") from None


def _rendered(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _values(defaults: str, helm: Body, commit: str) -> Body:
    values: Body = {}
    for given in (*documents(defaults), helm.get("valuesObject"), *documents(helm.get("values") or "")):
        values |= given or {}
    rows = helm.get("parameters") or ()
    return {**values, **{row["name"]: REVISION.sub(commit, str(row["value"])) for row in rows}}


def _filled(text: str, values: Body) -> str:
    def value_of(found: re.Match[str]) -> str:
        value: Any = values.get(found[1])
        for name in found[1].split(".") if value is None else ():
            value = (values if value is None else value).get(name, {})
        return str(value)

    return VALUE.sub(value_of, text)
