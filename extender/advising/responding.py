"""The response to a round: nothing, a dry run, or execution; each action is printed immediately."""

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
"""The exit code if an action failed or remained blocked."""

_SECOND: Final = 10**9
_FAILURES: Final = frozenset({Outcome.BLOCKED, Outcome.FAILED})


class Response(Protocol):
    """The response to a round."""

    async def follow(self, seen: Round, until: float) -> None:
        """Respond to one of many rounds, before the next is due at ``until`` (monotonic)."""
        ...

    async def conclude(self, seen: Round) -> int:
        """Respond to the only round, and return the exit code."""
        ...


class Silence:
    """Prints rounds, without any action."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    async def follow(self, seen: Round, until: float) -> None:  # noqa: ARG002 - as of Response
        """Print the round."""
        self._screen.done(seen, None)

    async def conclude(self, seen: Round) -> int:
        """Print the round."""
        self._screen.done(seen, None)
        return 0


class Rehearsal:
    """Prints the actions that would be taken."""

    def __init__(self, screen: Screen, terms: Terms) -> None:
        self._screen = screen
        self._terms = terms

    async def follow(self, seen: Round, until: float) -> None:  # noqa: ARG002 - as of Response
        """Print the actions."""
        await self.conclude(seen)

    async def conclude(self, seen: Round) -> int:
        """Print the actions."""
        deeds = rehearse(relieve(seen.outlooks, seen.bearings, self._terms))
        for deed in deeds:
            self._screen.deed(deed)
        self._screen.done(seen, deeds)
        return 0


class Performance:
    """Takes the actions; evictions that a budget blocks are retried."""

    def __init__(
        self, screen: Screen, terms: Terms, actor: Actor, known: Inventory, clock: Clock
    ) -> None:
        self._screen = screen
        self._terms = terms
        self._actor = actor
        self._known = known
        self._clock = clock

    async def follow(self, seen: Round, until: float) -> None:
        """Take the actions that are possible before the next round, which decides anew."""
        deeds = await self._actor.act(seen, self._known.hosts, self._terms, until)
        self._screen.done(seen, deeds)

    async def conclude(self, seen: Round) -> int:
        """Take all actions, with retries, within the time of the forecast."""
        until = self._clock.monotonic() + self._terms.within_ns / _SECOND
        deeds = await self._actor.act(seen, self._known.hosts, self._terms, until)
        deeds += await self._actor.insist(until)
        self._screen.done(seen, deeds)
        return UNDONE if _undone(deeds) else 0


def _undone(deeds: Iterable[Deed]) -> bool:
    """Return whether an action failed and no later attempt succeeded."""
    last = {(deed.step.relief.node, deed.step.pod): deed.outcome for deed in deeds}
    return any(outcome in _FAILURES for outcome in last.values())
