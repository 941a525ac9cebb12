"""How often Argo CD compares each Application again, and so after what time its verdict is stale."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from windlass.core.platform.freshness import STALE_INTERVALS
from windlass.kube.api_errors import KubeError
from windlass.kube.client.resources import CONFIG_MAPS
from windlass.settings.durations import parse_duration

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windlass.kube.client.readers import KubeReader

CONFIG_MAP = "argocd-cm"
INTERVAL_KEY, JITTER_KEY = "timeout.reconciliation", "timeout.reconciliation.jitter"
DEFAULT_INTERVAL, DEFAULT_JITTER = timedelta(seconds=120), timedelta(seconds=60)


@dataclass(slots=True)
class ResyncInterval:
    """The interval that Argo CD's ConfigMap sets, read at most once."""

    reader: KubeReader
    argocd_namespace: str
    _data: Mapping[str, str] | None = None

    async def stale_after(self) -> timedelta | None:
        """Age at which a verdict is stale; `None` if Argo CD compares only what changes.

        The default if the ConfigMap cannot be read.
        """
        if self._data is None:
            try:
                config_map = await self.reader.get(CONFIG_MAPS.named(CONFIG_MAP, self.argocd_namespace))
                self._data = config_map.get("data") or {}
            except KubeError:
                self._data = {}
        return parse_stale_after(self._data)


def parse_stale_after(data: Mapping[str, str]) -> timedelta | None:
    interval = _duration(data.get(INTERVAL_KEY), DEFAULT_INTERVAL)
    jitter = _duration(data.get(JITTER_KEY), DEFAULT_JITTER)
    return STALE_INTERVALS * (interval + jitter) if interval else None


def _duration(text: str | None, default: timedelta) -> timedelta:
    """The default if the text is missing or is not a duration, which Argo CD ignores, too."""
    try:
        return timedelta(0) if text == "0" else parse_duration(text)
    except ValueError:
        return default
