"""`windlass sandbox`: serves an embedded cluster."""

from __future__ import annotations

from typing import Any

import click

from windlass.cli.printed_lines import print_text


@click.command()
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port on 127.0.0.1; a free one unless told.")
@click.option(
    "--kubeconfig",
    metavar="FILE",
    default="windlass-sandbox.kubeconfig",
    show_default=True,
    help="Where to write the kubeconfig; removed at the end.",
)
@click.option("--speed", type=click.FloatRange(0.01, 1000), default=1.0, help="How much faster time runs inside.")
@click.option("--programs", is_flag=True, help="Let pods of the image windlass run windlass on this machine.")
def sandbox(**options: Any) -> None:
    """Serve an embedded cluster on 127.0.0.1 until interrupted; it forgets everything at its end.

    It has actors that behave like the controllers of Kubernetes and like Argo CD. Every request needs the token that is
    in the kubeconfig; only health and version are for everybody.
    """
    from windlass.cli import sandbox_server  # noqa: PLC0415 - loads the HTTP library

    sandbox_server.serve_sandbox(sandbox_server.SandboxOptions(**options), print_text)
