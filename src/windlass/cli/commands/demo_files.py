"""The files of the demo: a platform in a folder that replaces a git repository, and the changes made to it."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import yaml

from windlass.errors import InvalidInput
from windlass.settings.platform_files import PlatformFile
from windlass.settings.platforms import Assembled, assembled
from windlass.settings.yaml_positions import Checked, checked
from windlass.simulation import stand_ins
from windlass.simulation.stand_ins import Conduct

if TYPE_CHECKING:
    from pathlib import Path

NAME = "development"
SPEED = 20.0
VICTIM = "rook-ceph-cluster"
MARK = ".windlass-demo"
SECONDS = {"simple": 1, "operator": 1, "database": 2, "vault": 2, "storage-cluster": 3}
"""Expected duration of an application, by profile."""
DAG = """\
# The reference platform, with its limits for a cluster that is faster than any real one.
apiVersion: windlass.dev/v1alpha1
kind: Platform
metadata: {{name: demo}}
spec:
  extends: reference
  profiles:
{profiles}
"""
PROFILE = "    {name}: {{sync: 30s, health: 30s, degradedGrace: 1s, expected: {seconds}s}}"
ENVIRONMENT = """\
name: {name}
domain: example.org
gitRepository: {repository}
gitRevision: main
gitPath: root
retries: {{maxAttempts: 1}}
"""


def prepare(out: Path) -> None:
    """Create the demo folder. An earlier demo or an empty folder is replaced; anything else that exists is refused."""
    if out.exists() and not (out / MARK).exists() and not (out.is_dir() and not any(out.iterdir())):
        raise InvalidInput("this is not the folder of a demonstration", where=str(out), hint="name another by --out")
    try:
        if out.exists():
            shutil.rmtree(out)
        for folder in (out, out / "reports", out / "logs"):
            folder.mkdir(parents=True)
        (out / MARK).touch()
        _write(out, out / "repository")
    except OSError as error:
        raise InvalidInput(f"the folder cannot be written: {error.strerror}", where=str(out)) from None


def _write(out: Path, repository: Path) -> None:
    dag = DAG.format(profiles="\n".join(PROFILE.format(name=name, seconds=SECONDS[name]) for name in SECONDS))
    (out / "dag.yaml").write_text(dag)
    (out / "environment.yaml").write_text(ENVIRONMENT.format(name=NAME, repository=repository.resolve()))
    document = checked(dag.encode(), "dag.yaml", PlatformFile)
    assert isinstance(document, Checked), document
    found = assembled(document)
    assert isinstance(found, Assembled), found
    conducts = {name: Conduct(SPEED * took.total_seconds()) for name, took in found.platform.expected.items()}
    for path, content in stand_ins.files(found.platform, str(repository.resolve()), conducts).items():
        file = repository / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else _rendered(content))


def _rendered(content: Any) -> str:
    return yaml.safe_dump_all(content if isinstance(content, list) else [content], sort_keys=False)


def break_one(out: Path) -> str:
    """Set an image that cannot be pulled, with a short progress deadline."""
    return _committed(out, "2", Conduct(is_failing=True, progress_deadline=round(2 * SPEED)))


def mend(out: Path) -> str:
    return _committed(out, "3", Conduct(SPEED))


def _committed(out: Path, version: str, conduct: Conduct) -> str:
    file = out / "repository" / VICTIM / "all.yaml"
    [before] = yaml.safe_load_all(file.read_text())
    after = stand_ins.workload("Deployment", VICTIM, conduct)
    container = after["spec"]["template"]["spec"]["containers"][0]
    container["image"] = f"{container['image'].rpartition(':')[0]}:{version}"
    file.write_text(_rendered(after))
    old = before["spec"]["template"]["spec"]["containers"][0]["image"]
    why = "   # nobody can pull it" if conduct.is_failing else ""
    return f"  {file.relative_to(out)}\n  - image: {old}\n  + image: {container['image']}{why}"
