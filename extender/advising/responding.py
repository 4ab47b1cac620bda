"""What follows a round: nothing, words, or deeds; each shown as it comes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Protocol

from extender.advising.acting import Actor
from extender.advising.deeds import Deed, Outcome, rehearse
from extender.advising.inventory import Inventory
from extender.advising.rounds import Round
from extender.advising.screens import Screen
from extender.kube.clock import Clock
from policies.eviction.forestalling import Terms, relieve

UNDONE: Final = 1
"""The exit code if something was to be done and could not be."""

_SECOND: Final = 10**9
_FAILURES: Final = frozenset({Outcome.BLOCKED, Outcome.FAILED})


class Response(Protocol):
    """What follows a round."""

    async def follow(self, seen: Round, until: float) -> None:
        """Respond to one of many rounds, before the next is due (monotonic)."""
        ...

    async def conclude(self, seen: Round) -> int:
        """Respond to the only round, and give the exit code."""
        ...


class Silence:
    """Nothing is done."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    async def follow(self, seen: Round, until: float) -> None:  # noqa: ARG002 - as of Response
        """Show the round."""
        self._screen.done(seen, None)

    async def conclude(self, seen: Round) -> int:
        """Show the round."""
        self._screen.done(seen, None)
        return 0


class Rehearsal:
    """It is said what would be done."""

    def __init__(self, screen: Screen, terms: Terms) -> None:
        self._screen = screen
        self._terms = terms

    async def follow(self, seen: Round, until: float) -> None:  # noqa: ARG002 - as of Response
        """Say it."""
        await self.conclude(seen)

    async def conclude(self, seen: Round) -> int:
        """Say it."""
        deeds = rehearse(relieve(seen.outlooks, seen.bearings, self._terms))
        for deed in deeds:
            self._screen.deed(deed)
        self._screen.done(seen, deeds)
        return 0


class Performance:
    """It is done; what a budget forbids is tried again, in the end for as long as it may help."""

    def __init__(
        self, screen: Screen, terms: Terms, actor: Actor, known: Inventory, clock: Clock
    ) -> None:
        self._screen = screen
        self._terms = terms
        self._actor = actor
        self._known = known
        self._clock = clock

    async def follow(self, seen: Round, until: float) -> None:
        """Do what can be done before the next round; that decides anew about the rest."""
        deeds = await self._actor.act(seen, self._known.hosts, self._terms, until)
        self._screen.done(seen, deeds)

    async def conclude(self, seen: Round) -> int:
        """Do all of it, within the time that was looked ahead."""
        until = self._clock.monotonic() + self._terms.within_ns / _SECOND
        deeds = await self._actor.act(seen, self._known.hosts, self._terms, until)
        deeds += await self._actor.insist(until)
        self._screen.done(seen, deeds)
        return UNDONE if _undone(deeds) else 0


def _undone(deeds: Iterable[Deed]) -> bool:
    """Return whether something failed, and was not done later."""
    last = {(deed.step.relief.node, deed.step.pod): deed.outcome for deed in deeds}
    return any(outcome in _FAILURES for outcome in last.values())
