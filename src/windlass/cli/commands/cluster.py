"""`windlass cluster`: describes a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from windlass.cli.printed_lines import print_text

if TYPE_CHECKING:
    from windlass.settings.source import SettingsSource


@click.command()
@click.option(
    "--kubeconfig", metavar="FILE", help="Kubeconfig file.  [KUBECONFIG_PATH, or its content in KUBECONFIG_DATA]"
)
@click.option("--context", metavar="NAME", help="Context of the kubeconfig, if not the current one.")
@click.option("--in-cluster", is_flag=True, help="Use the service account of the pod this runs in.")
@click.pass_obj
def cluster(source: SettingsSource, /, **options: str | bool | None) -> None:
    """Show the server, identity and Applications of a kubeconfig.

    Reads only.
    """
    from windlass.cli import cluster_summary  # noqa: PLC0415 - loads the HTTP library

    for line in cluster_summary.describe(source.credentials(options)):
        print_text(line)
