"""Repositories in memory, in a directory or in git, and the manifests of a source at a commit.

Helm support is minimal: a folder with a Chart.yaml yields its templates with `{{ .Values.name }}` substituted.
`$ARGOCD_APP_REVISION` and `${ARGOCD_APP_REVISION}` become the commit, in parameters alone.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import yaml

from windlass.sandbox.apiserver.wire.yaml import KubernetesYamlLoader, check_complexity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from windlass.sandbox.apiserver.wire.api_status import Body

REVISION_VARIABLE = re.compile(r"\$\{ARGOCD_APP_REVISION\}|\$ARGOCD_APP_REVISION\b")
VALUE_REFERENCE = re.compile(r"\{\{-?\s*\.Values\.([\w.]+)\s*(?:\|\s*quote\s*)?-?\}\}")
MANIFEST_SUFFIXES = (".yaml", ".yml", ".json")
PARSE_ERRORS = (
    *(yaml.YAMLError, msgspec.DecodeError, RecursionError),
    *(AttributeError, KeyError, TypeError, ValueError),  # YAML that is no list of objects
)


class ComparisonFailure(Exception):
    """An Application cannot be compared: its source yields no manifests, or its project does not permit it."""

    def __init__(self, reason: str, *, condition: str = "ComparisonError", message: str = "") -> None:
        super().__init__(reason)
        self.condition = condition
        self.message = message or f"{condition}: {reason}"
        """Message of an operation that fails for this reason."""


class Repository(Protocol):
    def resolve(self, revision: str) -> str:
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
        texts = {path: value if isinstance(value, str) else _to_json(value) for path, value in files.items()}
        parent = self._branches.get(branch, "")
        commit = version or hashlib.sha1(f"{parent}{sorted(texts.items())}".encode()).hexdigest()  # noqa: S324 - as git
        self._commits[commit] = texts
        self._branches[branch] = self._branches["HEAD"] = commit
        return commit

    def resolve(self, revision: str) -> str:
        commit = self._branches.get(revision or "HEAD", revision)
        if commit not in self._commits:
            raise ComparisonFailure(f"unable to resolve '{revision}' to a commit SHA")
        return commit

    def files(self, commit: str) -> Mapping[str, str]:
        return self._commits[commit]


class DirectoryRepository:
    """A folder on disk: its revision is a hash of its content, and each revision read is kept."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._snapshots: dict[str, dict[str, str]] = {}

    def resolve(self, revision: str) -> str:
        if revision in self._snapshots:
            return revision
        paths = sorted(path for path in self._folder.rglob("*") if path.suffix in MANIFEST_SUFFIXES and path.is_file())
        try:
            texts = {path.relative_to(self._folder).as_posix(): path.read_text() for path in paths}
        except (OSError, UnicodeError) as error:
            raise ComparisonFailure(f"failed to read {self._folder}: {error}") from None
        commit = hashlib.sha1(str(texts).encode()).hexdigest()  # noqa: S324 - as git
        self._snapshots.setdefault(commit, texts)
        return commit

    def files(self, commit: str) -> Mapping[str, str]:
        return self._snapshots[commit]


class GitRepository:
    """A local repository, read with the `git` command."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files_by_commit: dict[str, dict[str, str]] = {}

    def resolve(self, revision: str) -> str:
        return self._git("rev-parse", "--verify", "--quiet", f"{revision or 'HEAD'}^{{commit}}").strip()

    def files(self, commit: str) -> Mapping[str, str]:
        if commit not in self._files_by_commit:
            names = self._git("ls-tree", "-r", "-z", "--name-only", commit).split("\0")
            manifests = [name for name in names if name.endswith(MANIFEST_SUFFIXES)]
            self._files_by_commit[commit] = {name: self._git("show", f"{commit}:{name}") for name in manifests}
        return self._files_by_commit[commit]

    def _git(self, *arguments: str) -> str:
        # No protocol: a repository may have a configuration that fetches missing objects with a command of its own.
        command = ["env", "GIT_ALLOW_PROTOCOL=", "git", "-C", str(self._folder), *arguments]
        result = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)  # noqa: S603 - no shell; fixed command
        if result.returncode:
            raise ComparisonFailure(f"git {arguments[0]} {arguments[-1]}: {result.stderr.strip() or 'not found'}")
        return result.stdout


class Repositories(dict[str, Repository]):
    """Repositories by URL; local paths need no entry."""

    def __init__(self) -> None:
        super().__init__()
        self._manifest_cache: dict[tuple[str, bytes], tuple[Mapping[str, str], list[Body]]] = {}

    def open(self, url: str) -> Repository:
        if url not in self:
            folder = Path(url.removeprefix("file://"))
            if not folder.is_absolute() or not folder.is_dir():
                raise ComparisonFailure(f"failed to list refs: repository not found: {url}")
            is_git = (folder / ".git").exists() or (folder / "HEAD").is_file()
            self[url] = GitRepository(folder) if is_git else DirectoryRepository(folder)
        return self[url]

    def resolve_sources(self, sources: list[Body], revisions: list[str]) -> tuple[list[str], list[Body]]:
        """Commits and manifests of sources, at the given or their own revisions. Raises ComparisonFailure."""
        target_revisions = revisions or [source.get("targetRevision", "") for source in sources]
        commits, manifests = [], []
        for number, (source, revision) in enumerate(zip(sources, target_revisions, strict=True), 1):
            try:
                repository = self.open(source.get("repoURL", ""))
                commits.append(repository.resolve(revision))
                if not source.get("ref") or source.get("path") or source.get("chart"):  # else only values files
                    manifests += self._cached_manifests(repository.files(commits[-1]), commits[-1], source)
            except ComparisonFailure as failure:
                head = f"Failed to load target state: failed to generate manifest for source {number} of {len(sources)}"
                raise ComparisonFailure(f"{head}: rpc error: code = Unknown desc = {failure}") from None
        return commits, manifests

    def _cached_manifests(self, files: Mapping[str, str], commit: str, source: Body) -> list[Body]:
        """Render once per commit and source; callers share the objects and must not change them."""
        key = (commit, msgspec.json.encode(source))
        cached = self._manifest_cache.get(key)
        if cached is None or cached[0] is not files:  # a chart version may be pushed again
            cached = self._manifest_cache[key] = (files, render_manifests(files, commit, source))
        return cached[1]


def render_manifests(files: Mapping[str, str], commit: str, source: Body) -> list[Body]:
    """The objects of a source at a commit with these files."""
    folder = (source.get("path") or source.get("chart") or ".").strip("/").removeprefix("./")
    prefix = "" if folder in {"", "."} else f"{folder}/"
    contents = {path.removeprefix(prefix): files[path] for path in sorted(files) if path.startswith(prefix)}
    if not contents:
        raise ComparisonFailure(f"{folder}: app path does not exist")
    if "Chart.yaml" in contents:
        values = _helm_values(contents.get("values.yaml", ""), source.get("helm") or {}, commit)
        contents = {
            path: _substitute_values(text, values) for path, text in contents.items() if path.startswith("templates/")
        }
    elif not (source.get("directory") or {}).get("recurse"):
        contents = {path: text for path, text in contents.items() if "/" not in path}
    objects = (item for text in contents.values() for item in parse_documents(text))
    return [_check_manifest(item) for item in objects if item]


def _check_manifest(item: Any) -> Body:
    metadata = item.get("metadata") if isinstance(item, dict) else None
    is_named = isinstance(metadata, dict) and bool({"name", "generateName"} & metadata.keys())
    if not is_named or not isinstance(item.get("apiVersion"), str) or not isinstance(item.get("kind"), str):
        raise ComparisonFailure("failed to unmarshal manifest: an object needs apiVersion, kind and metadata.name")
    manifest: Body = item
    return manifest


def parse_documents(text: str) -> Iterator[Body]:
    """The objects in a file: YAML documents, JSON, and the items of a List."""
    try:
        items = [msgspec.json.decode(text)] if text[:1] in {"{", "["} else yaml.load_all(text, KubernetesYamlLoader)
        for item in map(check_complexity, items):
            rows = item if isinstance(item, list) else [item]
            for row in rows:
                yield from row["items"] if row and row.get("kind") == "List" else [row]
    except PARSE_ERRORS as error:
        raise ComparisonFailure(f"failed to unmarshal manifest: {error}") from None


def _to_json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _helm_values(defaults: str, helm: Body, commit: str) -> Body:
    values: Body = {}
    for layer in (*parse_documents(defaults), helm.get("valuesObject"), *parse_documents(helm.get("values") or "")):
        values |= layer or {}
    rows = helm.get("parameters") or ()
    return {**values, **{row["name"]: REVISION_VARIABLE.sub(commit, str(row["value"])) for row in rows}}


def _substitute_values(text: str, values: Body) -> str:
    def value_of(match: re.Match[str]) -> str:
        value: Any = values.get(match[1])
        for name in match[1].split(".") if value is None else ():
            value = (values if value is None else value).get(name, {})
        return str(value)

    return VALUE_REFERENCE.sub(value_of, text)
