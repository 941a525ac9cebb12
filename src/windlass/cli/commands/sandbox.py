"""`windlass sandbox`: serves an embedded cluster."""

from __future__ import annotations

from typing import Any

import click

from windlass.cli.printed_lines import print_text


@click.command()
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port on 127.0.0.1; by default a free one.")
@click.option(
    "--kubeconfig",
    metavar="FILE",
    default="windlass-sandbox.kubeconfig",
    show_default=True,
    help="Where to write the kubeconfig; removed at the end.",
)
@click.option("--speed", type=click.FloatRange(0.01, 1000), default=1.0, help="Factor by which its time runs faster.")
@click.option("--programs", is_flag=True, help="Let pods of the image windlass run windlass on this machine.")
def sandbox(**options: Any) -> None:
    """Serve an embedded Kubernetes cluster on 127.0.0.1.

    It runs until interrupted and keeps nothing. It has simulated controllers of Kubernetes and Argo CD. Every request
    needs the token that is in the kubeconfig, except for health and version.
    """
    from windlass.cli import sandbox_server  # noqa: PLC0415 - loads the HTTP library

    sandbox_server.serve_sandbox(sandbox_server.SandboxOptions(**options), print_text)
