"""`windlass rbac`: prints the roles and bindings that an action needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from windlass.cli.options import FILE_SETTINGS, setting_options
from windlass.cli.printed_lines import print_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from windlass.settings.settings import Settings
    from windlass.settings.source import SettingsSource

ACTIONS = ("deploy", "validate", "plan", "teardown", "wait", "import", "status")


@click.command()
@click.option("--for", "actions", type=click.Choice(ACTIONS), multiple=True, required=True, help="Action. Repeatable.")
@click.option(
    "--subject",
    metavar="USER",
    help="User name as in an error message; that of a service account is system:serviceaccount:NAMESPACE:NAME.  "
    "[default: the service account windlass in Argo CD's namespace]",
)
@click.option(
    "--api-group",
    "api_groups",
    metavar="GROUP",
    multiple=True,
    help="Also permit reading objects of this API group, whose health check only Argo CD's ConfigMap has. Repeatable.",
)
@setting_options(*FILE_SETTINGS)
@click.pass_obj
def rbac(
    source: SettingsSource,
    /,
    actions: tuple[str, ...],
    subject: str | None,
    api_groups: tuple[str, ...],
    **options: Any,
) -> None:
    """Print the RBAC rights that an action needs.

    As YAML for kubectl apply; no cluster is needed. The platform file and the mounted health checks determine which
    namespaces and kinds are read.
    """
    from windlass.core.platform.model.applications import ApplicationRef  # noqa: PLC0415
    from windlass.core.platform.permissions import (  # noqa: PLC0415
        PermissionRequest,
        RightsFor,
        permissions_yaml,
    )

    settings = source.settings(options)
    targets = [node.target for node in settings.platform.applications.values()]
    request = PermissionRequest(
        subject=subject or f"system:serviceaccount:{settings.argocd_namespace}:windlass",
        argocd_namespace=settings.argocd_namespace,
        application_namespaces=frozenset(
            ref.namespace for ref in targets if isinstance(ref, ApplicationRef) and ref.namespace
        ),
        checked_resources=frozenset(_checked_resources(settings, api_groups)),
    )
    print_text(permissions_yaml(dict.fromkeys(map(RightsFor, actions)), request).removesuffix("\n"))


def _checked_resources(settings: Settings, api_groups: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Kinds with a health check of Windlass or in a mounted file, and kinds that are nodes. Argo CD's have rows."""
    from windlass.argo.health import scripts  # noqa: PLC0415
    from windlass.core.platform.model.applications import ResourceRef  # noqa: PLC0415
    from windlass.core.platform.permissions import ARGO, readable_resource  # noqa: PLC0415

    kinds = {*scripts.embedded_scripts().exact, *scripts.mounted_scripts(settings.cluster.mounts.health_scripts).exact}
    yield from (readable_resource(kind.group, kind.kind) for kind in kinds if kind.group != ARGO)
    for node in settings.platform.applications.values():
        if isinstance(node.target, ResourceRef):
            yield readable_resource(node.target.api_version.rpartition("/")[0], node.target.kind)
    yield from ((group, "*") for group in api_groups)
