"""Kubeconfig of a sandbox."""

from __future__ import annotations

import base64

GENERATED_MARK = "# Written by windlass sandbox"
TEMPLATE = """\
{mark}; it leads nowhere once that has ended.
apiVersion: v1
kind: Config
current-context: sandbox
clusters:
- name: sandbox
  cluster:
    server: {address}{authority}
contexts:
- name: sandbox
  context: {{cluster: sandbox, user: admin, namespace: default}}
users:
- name: admin
  user:
    token: {token}
"""


def render_kubeconfig(address: str, token: str, ca_certificate: bytes = b"") -> str:
    """The kubeconfig file; the CA certificate is needed if the sandbox serves TLS."""
    line = f"\n    certificate-authority-data: {base64.b64encode(ca_certificate).decode()}" if ca_certificate else ""
    return TEMPLATE.format(mark=GENERATED_MARK, address=address, token=token, authority=line)
