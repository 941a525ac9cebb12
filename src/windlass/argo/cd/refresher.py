"""The one write that needs no lock: the annotation with which Argo CD is asked to compare an Application again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.argo.cd.applications import APPLICATIONS, REFRESH_ANNOTATION, Application
from windlass.kube.api_errors import TRANSIENT_ERRORS

if TYPE_CHECKING:
    from windlass.kube.client.clients import KubeClient


class Refresher:
    """Requests refreshes and can write nothing else, so that a deploy that changes nothing needs no lock."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self.count = 0

    async def refresh(self, application: Application) -> Application:
        """Ask Argo CD to compare the Application again. Nothing else changes, so concurrent writes need no check.

        If a refresh is already requested, write a different value: an identical write emits no event.
        """
        self.count += 1
        current = (application.metadata.annotations or {}).get(REFRESH_ANNOTATION)
        value = {"hard": "hard", "normal": "again"}.get(current or "", "normal")
        ref = APPLICATIONS.named(application.metadata.name, application.metadata.namespace)
        response = await self._client.patch(ref, {"metadata": {"annotations": {REFRESH_ANNOTATION: value}}})
        return self._client.convert(response, Application)

    async def try_refresh(self, application: Application) -> Application | None:
        """Request a refresh; `None` if the result is unknown."""
        try:
            return await self.refresh(application)
        except TRANSIENT_ERRORS:
            return None
