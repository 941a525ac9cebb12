"""`windlass plan`: what an action would do, shown, and kept in a file that `deploy --plan` holds itself to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from windlass.cli import acting
from windlass.core.platform import plan_documents
from windlass.core.platform.reports import Action
from windlass.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windlass.core.platform.plan_documents import Approved
    from windlass.core.platform.reports import Report
    from windlass.settings.loading import Settings


def planned(options: Mapping[str, Any], environ: Mapping[str, str], action: str, out: str | None) -> Report:
    wish = Action(action)
    settings = acting.loaded({**options, "dry_run": True}, environ, wish)
    found = acting.planned(options, environ, settings, wish)
    if out:
        document = plan_documents.document(found.plan, _about(settings, wish), is_root_written=found.is_root_written)
        _write(Path(out), msgspec.json.format(msgspec.json.encode(document), indent=2))
    return found.report


def read(path: str, settings: Settings, action: Action) -> Approved:
    try:
        content = msgspec.json.decode(Path(path).read_bytes())
    except OSError as error:
        raise InvalidInput(f"the plan cannot be read: {error.strerror}", where=path) from None
    except msgspec.DecodeError:
        raise InvalidInput("this is no plan", where=path, hint="windlass plan --out FILE writes one") from None
    return plan_documents.read(content, _about(settings, action), path)


def _about(settings: Settings, action: Action) -> Mapping[str, str]:
    scope, environment = str(settings.scope), acting.environment_of(settings)
    return {"action": str(action), "environment": environment, "scope": scope}


def _write(path: Path, content: bytes) -> None:
    try:
        path.write_bytes(content + b"\n")
    except OSError as error:
        raise InvalidInput(f"the plan cannot be written: {error.strerror}", where=str(path)) from None
