"""The files of the demo: a platform in a folder that replaces a git repository, and the changes made to it."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import yaml

from windlass import output_files
from windlass.errors import InvalidInput
from windlass.settings.platform_files import PlatformFile
from windlass.settings.platforms import PlatformDefinition, assemble_platform
from windlass.settings.yaml_positions import ParsedFile, parse_file
from windlass.simulation import stand_ins
from windlass.simulation.stand_ins import WorkloadProfile

if TYPE_CHECKING:
    from pathlib import Path

ENVIRONMENT_NAME = "development"
SPEED = 20.0
FAILING_APPLICATION = "rook-ceph-cluster"
MARKER_FILE = ".windlass-demo"
TOKEN_FILE = "argocd-token"  # noqa: S105 - a name
PROFILE_SECONDS = {"simple": 1, "operator": 1, "database": 2, "vault": 2, "storage-cluster": 3}
"""Expected duration of an application, by profile."""
PLATFORM_TEMPLATE = """\
# The reference platform, with its limits for a cluster that is faster than any real one.
apiVersion: windlass.dev/v1alpha1
kind: Platform
metadata: {{name: demo}}
spec:
  extends: reference
  profiles:
{profiles}
"""
PROFILE_TEMPLATE = "    {name}: {{sync: 30s, health: 30s, degradedGrace: 1s, expected: {seconds}s}}"
ENVIRONMENT_TEMPLATE = """\
name: {name}
domain: example.org
gitRepository: {repository}
gitRevision: main
gitPath: root
retries: {{maxAttempts: 1}}
"""


def prepare_folder(out: Path) -> None:
    """Create the demo folder. An earlier demo or an empty folder is replaced; anything else that exists is refused."""
    if out.exists() and not (out / MARKER_FILE).exists() and not (out.is_dir() and not any(out.iterdir())):
        raise InvalidInput("this is not the folder of a demonstration", where=str(out), hint="name another by --out")
    try:
        if out.exists():
            shutil.rmtree(out)
        for folder in (out, out / "reports", out / "logs"):
            folder.mkdir(parents=True)
        output_files.write_file(out / MARKER_FILE, b"")
        _write_files(out, out / "repository")
    except OSError as error:
        raise InvalidInput(f"the folder cannot be written: {error.strerror}", where=str(out)) from None


def _write_files(out: Path, repository: Path) -> None:
    dag = PLATFORM_TEMPLATE.format(
        profiles="\n".join(
            PROFILE_TEMPLATE.format(name=name, seconds=PROFILE_SECONDS[name]) for name in PROFILE_SECONDS
        )
    )
    environment = ENVIRONMENT_TEMPLATE.format(name=ENVIRONMENT_NAME, repository=repository.resolve())
    output_files.write_file(out / "dag.yaml", dag)
    output_files.write_file(out / "environment.yaml", environment)
    document = parse_file(dag.encode(), "dag.yaml", PlatformFile)
    assert isinstance(document, ParsedFile), document
    definition = assemble_platform(document)
    assert isinstance(definition, PlatformDefinition), definition
    profiles = {
        name: WorkloadProfile(SPEED * expected.total_seconds())
        for name, expected in definition.platform.expected_durations.items()
    }
    for path, content in stand_ins.repository_files(definition.platform, str(repository.resolve()), profiles).items():
        file = repository / path
        file.parent.mkdir(parents=True, exist_ok=True)
        output_files.write_file(file, content if isinstance(content, str) else _yaml_text(content))


def _yaml_text(content: Any) -> str:
    return yaml.safe_dump_all(content if isinstance(content, list) else [content], sort_keys=False)


def write_token(out: Path, kubeconfig: Path) -> None:
    """Write the token that the sandbox accepts in place of one of Argo CD: that of the kubeconfig."""
    [user] = yaml.safe_load(kubeconfig.read_text())["users"]
    output_files.write_file(out / TOKEN_FILE, user["user"]["token"], mode=output_files.SECRET_MODE)


def break_application(out: Path) -> str:
    """Set an image that cannot be pulled, with a short progress deadline."""
    return _commit_version(out, "2", WorkloadProfile(is_failing=True, progress_deadline=round(2 * SPEED)))


def fix_application(out: Path) -> str:
    return _commit_version(out, "3", WorkloadProfile(SPEED))


def _commit_version(out: Path, version: str, profile: WorkloadProfile) -> str:
    file = out / "repository" / FAILING_APPLICATION / "all.yaml"
    [before] = yaml.safe_load_all(file.read_text())
    after = stand_ins.workload_manifest("Deployment", FAILING_APPLICATION, profile)
    container = after["spec"]["template"]["spec"]["containers"][0]
    container["image"] = f"{container['image'].rpartition(':')[0]}:{version}"
    output_files.write_file(file, _yaml_text(after))
    old = before["spec"]["template"]["spec"]["containers"][0]["image"]
    comment = "   # this image does not exist" if profile.is_failing else ""
    return f"  {file.relative_to(out)}\n  - image: {old}\n  + image: {container['image']}{comment}"
