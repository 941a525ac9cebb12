"""Windlass, with only the fields of an Application that an executor looks at."""

from __future__ import annotations

import asyncio
import sys

import msgspec

from benchmarks.contestants.windlass_plain import main
from windlass.kube.client.objects import TypedObject


class Health(msgspec.Struct, frozen=True, gc=False):
    status: str = ""


class Sync(msgspec.Struct, frozen=True, gc=False):
    status: str = ""
    revision: str = ""


class SyncResult(msgspec.Struct, frozen=True, gc=False):
    revision: str = ""


class OperationState(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    phase: str = ""
    message: str = ""
    started_at: str = ""
    finished_at: str = ""
    sync_result: SyncResult | None = None


class Resource(msgspec.Struct, frozen=True, gc=False):
    kind: str
    name: str
    group: str = ""
    namespace: str = ""
    status: str = ""
    health: Health | None = None


class Status(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    health: Health | None = None
    sync: Sync | None = None
    operation_state: OperationState | None = None
    reconciled_at: str = ""
    resources: list[Resource] = []


class Application(TypedObject, frozen=True):
    status: Status | None = None


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:], into=Application))
