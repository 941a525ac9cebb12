"""The manifest of the root Application."""

from __future__ import annotations

from windlass.argo.cd.root_application import RootApplication, root_manifest


def test_the_root_never_syncs_itself_and_its_deletion_never_cascades() -> None:
    """From the first write on: what is corrected later, Argo CD may have acted on before."""
    manifest = root_manifest(RootApplication("https://git.test/apps.git", "main", "root", {}), "argocd")
    assert "syncPolicy" not in manifest["spec"]
    assert "finalizers" not in manifest["metadata"]
