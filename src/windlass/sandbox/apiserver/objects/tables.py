"""Tables: objects as the rows that `kubectl get` prints, with the columns of the API server.

Wide columns, which only `kubectl get -o wide` shows, are those of pods and workloads.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from windlass.sandbox.apiserver.objects.selectors import value_at_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from windlass.sandbox.apiserver.objects.kinds import ServedKind
    from windlass.sandbox.apiserver.wire.api_status import Body

NONE, UNSET, UNKNOWN = "<none>", "<unset>", "<unknown>"
ACCESS_MODES = {
    "ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP",
}  # fmt: skip
MINUTE, HOUR, DAY = 60, 3_600, 86_400
AGE_UNITS = (
    (2 * MINUTE, 1, "s", 0, ""), (10 * MINUTE, MINUTE, "m", 1, "s"), (3 * HOUR, MINUTE, "m", 0, ""),
    (8 * HOUR, HOUR, "h", MINUTE, "m"), (2 * DAY, HOUR, "h", 0, ""), (8 * DAY, DAY, "d", HOUR, "h"),
    (730 * DAY, DAY, "d", 0, ""), (float("inf"), 365 * DAY, "y", DAY, "d"),
)  # fmt: skip
"""Below which age which units are shown."""


class PrinterColumn(NamedTuple):
    name: str
    cell: Callable[[Body, datetime], Any]
    type: str = "string"
    priority: int = 0

    def definition(self) -> Body:
        form = "name" if self.name == "Name" else ""
        return {"name": self.name, "type": self.type, "format": form, "description": "", "priority": self.priority}


def wants_table(accept: str) -> bool:
    return ";as=Table;" in f"{accept.partition(',')[0]};".replace(" ", "")


def build_table(
    kind: ServedKind,
    items: Iterable[Body],
    meta: Body,
    now: datetime,
    include: str = "Metadata",
    *,
    headers: bool = True,
) -> Body:
    """A Table of objects; `include` says what each row has of its object: nothing, its metadata or all of it."""
    columns = _columns(kind)
    rows = [
        {"cells": [column.cell(item, now) for column in columns], "object": _row_object(kind, item, include)}
        for item in items
    ]
    definitions = [column.definition() for column in columns] if headers else []
    table = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": meta}
    return {**table, "columnDefinitions": definitions, "rows": rows}


def human_duration(seconds: float) -> str:
    """As kubectl shows an age: the smaller unit only with a small number of the larger one."""
    whole = max(0, int(seconds))
    _, size, unit, small_size, small_unit = next(row for row in AGE_UNITS if whole < row[0])
    small = whole % size // small_size if small_size else 0
    return f"{whole // size}{unit}" + (f"{small}{small_unit}" if small else "")


def _row_object(kind: ServedKind, item: Body, include: str) -> Body | None:
    if include == "None":
        return None
    partial = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": item["metadata"]}
    return {**kind.type_meta, **item} if include == "Object" else partial


def _columns(kind: ServedKind) -> list[PrinterColumn]:
    if kind.is_custom:
        declared = [
            PrinterColumn(row["name"], _custom_cell(row), row["type"], row.get("priority", 0))
            for row in kind.printer_columns
        ]
        return [NAME, *(declared or [AGE_DATE])]
    return [NAME, *(COLUMNS.get(kind.id) or [AGE])]


def _custom_cell(row: Body) -> Callable[[Body, datetime], Any]:
    def cell(item: Body, now: datetime) -> Any:
        value = value_at_path(item, row["jsonPath"])
        return value if value is None or row["type"] != "date" else _age(value, now)

    return cell


def _age(text: Any, now: datetime) -> str:
    try:
        return human_duration((now - datetime.fromisoformat(text)).total_seconds())
    except (TypeError, ValueError):
        return UNKNOWN


def _field(path: str, default: Any = "") -> Callable[[Body, datetime], Any]:
    def cell(item: Body, _: datetime) -> Any:
        value = value_at_path(item, path)
        return default if value is None else value

    return cell


def _rows(item: Body, path: str) -> list[Body]:
    return value_at_path(item, path) or []


def _ratio(part: str, whole: str) -> Callable[[Body, datetime], str]:
    return lambda item, now: f"{_field(part, 0)(item, now)}/{_field(whole, 1)(item, now)}"


def _size(*names: str) -> Callable[[Body, datetime], int]:
    return lambda item, _: sum(len(item.get(name) or ()) for name in names)


def _phase(item: Body, now: datetime) -> Any:
    return "Terminating" if item["metadata"].get("deletionTimestamp") else _field("status.phase")(item, now)


def _pod_status(item: Body, now: datetime) -> Any:
    """Why a container does not run, if one does not; otherwise the phase of the pod."""
    statuses = _rows(item, "status.containerStatuses")
    reasons = [
        state.get("reason") or f"ExitCode:{state.get('exitCode', 0)}"
        for row in statuses
        for name, state in (row.get("state") or {}).items()
        if name != "running" and (name == "terminated" or state.get("reason"))
    ]
    if item["metadata"].get("deletionTimestamp"):
        return "Terminating"
    is_running = any("running" in (row.get("state") or {}) for row in statuses)
    phase = (item.get("status") or {}).get("reason") or _field("status.phase", "Pending")(item, now)
    return reasons[0] if reasons and not (reasons[0] == "Completed" and is_running) else phase


def _ready_containers(item: Body, _: datetime) -> str:
    statuses = _rows(item, "status.containerStatuses")
    return f"{sum(bool(row.get('ready')) for row in statuses)}/{len(_rows(item, 'spec.containers'))}"


def _restarts(item: Body, _: datetime) -> str:
    return str(sum(row.get("restartCount", 0) for row in _rows(item, "status.containerStatuses")))


def _containers(field: str, path: str = "spec.template.spec") -> Callable[[Body, datetime], str]:
    return lambda item, _: ",".join(str(row.get(field, "")) for row in _rows(item, f"{path}.containers"))


def _labels(path: str) -> Callable[[Body, datetime], str]:
    return lambda item, _: ",".join(f"{k}={v}" for k, v in sorted((value_at_path(item, path) or {}).items())) or NONE


def _job_status(item: Body, _: datetime) -> str:
    conditions = _rows(item, "status.conditions")
    true = {row.get("type") for row in conditions if row.get("status") == "True"}
    found = [word for word in ("Complete", "Failed", "Suspended") if word in true]
    return found[0] if found else "Terminating" if item["metadata"].get("deletionTimestamp") else "Running"


def _job_duration(item: Body, now: datetime) -> str:
    status = item.get("status") or {}
    end = datetime.fromisoformat(status["completionTime"]) if status.get("completionTime") else now
    return _age(status["startTime"], end) if status.get("startTime") else ""


def _ports(item: Body, _: datetime) -> str:
    rows = _rows(item, "spec.ports")
    nodes = [f":{row['nodePort']}" if row.get("nodePort") else "" for row in rows]
    texts = [f"{row.get('port')}{node}/{row.get('protocol', 'TCP')}" for row, node in zip(rows, nodes, strict=True)]
    return ",".join(texts) or NONE


def _external_address(item: Body, now: datetime) -> Any:
    missing = {"LoadBalancer": "<pending>"}.get(_field("spec.type")(item, now), NONE)
    return _field("spec.externalName", missing)(item, now)


def _access_modes(path: str) -> Callable[[Body, datetime], str]:
    return lambda item, _: ",".join(ACCESS_MODES.get(mode, mode) for mode in value_at_path(item, path) or ())


def _claim(item: Body, _: datetime) -> str:
    ref = value_at_path(item, "spec.claimRef") or {}
    return f"{ref.get('namespace')}/{ref.get('name')}" if ref else ""


def _node_status(item: Body, _: datetime) -> str:
    ready = [row for row in _rows(item, "status.conditions") if row.get("type") == "Ready"]
    status = "Unknown" if not ready else "Ready" if ready[0].get("status") == "True" else "NotReady"
    return f"{status},SchedulingDisabled" if value_at_path(item, "spec.unschedulable") else status


NAME = PrinterColumn("Name", _field("metadata.name"))
AGE = PrinterColumn("Age", lambda item, now: _age(item["metadata"].get("creationTimestamp"), now))
AGE_DATE = AGE._replace(type="date")
CREATED = PrinterColumn("Created At", _field("metadata.creationTimestamp"), "date")
TEMPLATE = [
    PrinterColumn("Containers", _containers("name"), priority=1),
    PrinterColumn("Images", _containers("image"), priority=1),
]
SELECTOR = PrinterColumn("Selector", _labels("spec.selector.matchLabels"), priority=1)
REPLICAS = [
    PrinterColumn("Desired", _field("spec.replicas", 0), "integer"),
    PrinterColumn("Current", _field("status.replicas", 0), "integer"),
    PrinterColumn("Ready", _field("status.readyReplicas", 0), "integer"),
]
SCHEDULED = [
    PrinterColumn(name, _field(f"status.{field}", 0), "integer")
    for name, field in (
        ("Desired", "desiredNumberScheduled"), ("Current", "currentNumberScheduled"), ("Ready", "numberReady"),
        ("Up-to-date", "updatedNumberScheduled"), ("Available", "numberAvailable"),
    )
]  # fmt: skip
CLASS = PrinterColumn("StorageClass", _field("spec.storageClassName"))
ATTRIBUTES = PrinterColumn("VolumeAttributesClass", _field("spec.volumeAttributesClassName", UNSET))
COLUMNS: dict[str, list[PrinterColumn]] = {
    "pods": [
        PrinterColumn("Ready", _ready_containers), PrinterColumn("Status", _pod_status),
        PrinterColumn("Restarts", _restarts), AGE, PrinterColumn("IP", _field("status.podIP", NONE), priority=1),
        PrinterColumn("Node", _field("spec.nodeName", NONE), priority=1),
        PrinterColumn("Nominated Node", _field("status.nominatedNodeName", NONE), priority=1),
        PrinterColumn("Readiness Gates", lambda _, __: NONE, priority=1),
    ],
    "deployments.apps": [
        PrinterColumn("Ready", _ratio("status.readyReplicas", "spec.replicas")),
        PrinterColumn("Up-to-date", _field("status.updatedReplicas", 0)),
        PrinterColumn("Available", _field("status.availableReplicas", 0)), AGE, *TEMPLATE, SELECTOR,
    ],
    "statefulsets.apps": [PrinterColumn("Ready", _ratio("status.readyReplicas", "spec.replicas")), AGE, *TEMPLATE],
    "daemonsets.apps": [
        *SCHEDULED, PrinterColumn("Node Selector", _labels("spec.template.spec.nodeSelector")), AGE,
        *TEMPLATE, SELECTOR,
    ],
    "replicasets.apps": [*REPLICAS, AGE, *TEMPLATE, SELECTOR],
    "jobs.batch": [
        PrinterColumn("Status", _job_status),
        PrinterColumn("Completions", _ratio("status.succeeded", "spec.completions")),
        PrinterColumn("Duration", _job_duration), AGE, *TEMPLATE, SELECTOR,
    ],
    "services": [
        PrinterColumn("Type", _field("spec.type", "ClusterIP")),
        PrinterColumn("Cluster-IP", _field("spec.clusterIP", NONE)),
        PrinterColumn("External-IP", _external_address), PrinterColumn("Port(s)", _ports), AGE,
        PrinterColumn("Selector", _labels("spec.selector"), priority=1),
    ],
    "configmaps": [PrinterColumn("Data", _size("data", "binaryData")), AGE],
    "secrets": [PrinterColumn("Type", _field("type")), PrinterColumn("Data", _size("data")), AGE],
    "namespaces": [PrinterColumn("Status", _phase), AGE],
    "nodes": [
        PrinterColumn("Status", _node_status), PrinterColumn("Roles", lambda _, __: NONE), AGE,
        PrinterColumn("Version", _field("status.nodeInfo.kubeletVersion")),
    ],
    "persistentvolumeclaims": [
        PrinterColumn("Status", _phase), PrinterColumn("Volume", _field("spec.volumeName")),
        PrinterColumn("Capacity", _field("status.capacity.storage")),
        PrinterColumn("Access Modes", _access_modes("status.accessModes")), CLASS, ATTRIBUTES, AGE,
    ],
    "persistentvolumes": [
        PrinterColumn("Capacity", _field("spec.capacity.storage")),
        PrinterColumn("Access Modes", _access_modes("spec.accessModes")),
        PrinterColumn("Reclaim Policy", _field("spec.persistentVolumeReclaimPolicy")), PrinterColumn("Status", _phase),
        PrinterColumn("Claim", _claim), CLASS, ATTRIBUTES, PrinterColumn("Reason", _field("status.reason")), AGE,
    ],
    "leases.coordination.k8s.io": [PrinterColumn("Holder", _field("spec.holderIdentity")), AGE],
    "serviceaccounts": [PrinterColumn("Secrets", _size("secrets")), AGE],
    "storageclasses.storage.k8s.io": [
        PrinterColumn("Provisioner", _field("provisioner")),
        PrinterColumn("ReclaimPolicy", _field("reclaimPolicy", "Delete")),
        PrinterColumn("VolumeBindingMode", _field("volumeBindingMode", UNSET)),
        PrinterColumn("AllowVolumeExpansion", _field("allowVolumeExpansion", False)), AGE,
    ],
    "customresourcedefinitions.apiextensions.k8s.io": [CREATED],
    "roles.rbac.authorization.k8s.io": [CREATED],
    "clusterroles.rbac.authorization.k8s.io": [CREATED],
}  # fmt: skip
"""By kind, without the name. Events have no name column in `kubectl get`, so they keep the general one."""
