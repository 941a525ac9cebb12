"""Which objects an Application manages, and what manages Applications.

Derived from status, owner references, finalizers and tracking annotations, without I/O.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.argo.cd.applications import APPLICATIONS, children, parse
from windlass.argo.cd.ownership import SETS
from windlass.core.platform.teardown.inventory import Found, Item
from windlass.core.platform.teardown.parents import Maker

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from windlass.argo.cd.applications import Application, Place
    from windlass.kube.client.objects import Metadata
    from windlass.kube.client.resources import Resource

CASCADE = "resources-finalizer.argocd.argoproj.io"
"""An Application with this finalizer, or one with this prefix, deletes everything it manages when it is deleted."""
TRACKING, LABEL = "argocd.argoproj.io/tracking-id", "app.kubernetes.io/instance"
OPTIONS, POLICY = "argocd.argoproj.io/sync-options", "helm.sh/resource-policy"
MAKES_NAMESPACE = "CreateNamespace=true"


def item_at(place: Place) -> Item:
    return Item(APPLICATIONS.group, APPLICATIONS.kind, *place)


def place_of(application: Application) -> Place:
    return (application.metadata.namespace, application.metadata.name)


def instance_at(place: Place, argocd: str) -> str:
    """The instance name with which Argo CD labels and annotates the objects of an Application."""
    return place[1] if place[0] == argocd else f"{place[0]}_{place[1]}"


def made_by(application: Application) -> frozenset[Item]:
    rows = (application.status.resources if application.status else None) or ()
    return frozenset(Item(row.group or "", row.kind or "", row.namespace or "", row.name or "") for row in rows)


def cascades(application: Application) -> bool:
    return any(name.startswith(CASCADE) for name in application.metadata.finalizers)


def target_namespace(application: Application) -> str:
    """The namespace of this cluster it deploys to; empty if it has none or deploys to another cluster."""
    destination = application.spec.destination if application.spec else None
    is_here = destination is not None and not parse(application).is_remote
    return (destination.namespace or "") if destination and is_here else ""


def target_item(application: Application) -> Item:
    """Key of the namespace it deploys to, which is deleted after its contents even if the Application manages it."""
    return Item("", "Namespace", "", target_namespace(application))


def makes_namespace(application: Application) -> bool:
    policy = application.spec.sync_policy if application.spec else None
    return policy is not None and MAKES_NAMESPACE in (policy.sync_options or ())


def family(
    application: Application, view: Mapping[Place, Application], without: Collection[Place]
) -> list[Application]:
    """The Application and, recursively, those it defines; those in `exclude` are left out with their own children."""
    found: dict[Place, Application] = {}
    todo = [application]
    while todo:
        member = todo.pop()
        found[place_of(member)] = member
        below = sorted(place for place, _ in children(member) if place not in without and place not in found)
        todo += [view[place] for place in below if place in view]
    return list(found.values())


def makers(view: Mapping[Place, Application]) -> list[Maker]:
    """Applications that define other Applications or ApplicationSets, and the ApplicationSets that own Applications."""
    found = []
    sets: dict[Item, set[Item]] = {}
    for place, application in view.items():
        made = {item_at(child) for child, _ in children(application)}
        made |= {item for item in made_by(application) if (item.group, item.kind) == (SETS.group, SETS.kind)}
        if made - {item_at(place)}:
            found.append(Maker(item_at(place), frozenset(made) - {item_at(place)}, parse(application).is_automated))
        for owner in application.metadata.owner_references:
            if owner.kind == SETS.kind:
                sets.setdefault(Item(SETS.group, SETS.kind, place[0], owner.name), set()).add(item_at(place))
    return found + [Maker(item, frozenset(made), makes_again=True) for item, made in sorted(sets.items())]


def found_object(resource: Resource, meta: Metadata) -> Found:
    item = Item(resource.group, resource.kind, meta.namespace, meta.name)
    return Found(
        item=item,
        uid=meta.uid,
        resource=str(resource),
        owners=tuple(owner.uid for owner in meta.owner_references),
        mark=_mark(item, meta.annotations.get(TRACKING, "")),
        label=meta.labels.get(LABEL, ""),
        finalizers=meta.finalizers,
        is_kept=_is_kept(meta.annotations),
        is_deleting=bool(meta.deletion_timestamp),
    )


def _mark(item: Item, text: str) -> str:
    """Instance name from a tracking ID; empty if the ID names another object, from which it was copied.

    The namespace is not compared for cluster-scoped objects.
    """
    instance, _, named = text.partition(":")
    kind, _, place = named.partition(":")
    namespace, _, name = place.partition("/")
    is_own = kind == f"{item.group}/{item.kind}" and name == item.name and item.namespace in {"", namespace}
    return instance if is_own else ""


def _is_kept(annotations: Mapping[str, str]) -> bool:
    options = {option.strip() for option in annotations.get(OPTIONS, "").split(",")}
    return "Delete=false" in options or annotations.get(POLICY) == "keep"


def names_of(items: Iterable[Item], most: int = 3) -> str:
    named = [str(item) for item in items]
    more = f" and {len(named) - most} more" if len(named) > most else ""
    return ", ".join(named[:most]) + more
