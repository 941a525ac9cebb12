"""What happens beside a run: events by other clients and in the cluster itself, at the times a scenario gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.simulation.play import Play
    from tests.simulation.scenarios import Event


class Events:
    def __init__(self, play: Play) -> None:
        self._play = play

    async def play(self, event: Event) -> None:
        await self._play.sandbox.clock.sleep(event.at)

    async def repair(self) -> None:
        """Undo whatever is still wrong: from now on a run must succeed."""
        self._play.argocd.dropped_updates.clear()
