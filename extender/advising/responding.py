"""The response to a round: nothing, a dry run, or execution; each action is printed immediately."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Protocol

from extender.advising.acting import Executor
from extender.advising.deeds import Action, ActionResult, planned_actions
from extender.advising.inventory import NodeInventory
from extender.advising.rounds import ObservationRound
from extender.advising.screens import Printer
from extender.kube.clock import Clock
from policies.eviction.forestalling import ReliefLimits, plan_relief

EXIT_INCOMPLETE: Final = 1
"""The exit code if an action failed or remained blocked."""

_SECOND: Final = 10**9
_FAILURES: Final = frozenset({ActionResult.BLOCKED, ActionResult.FAILED})


class RoundResponse(Protocol):
    """The response to a round."""

    async def respond(self, observed: ObservationRound, until: float) -> None:
        """Respond to one of many rounds, before the next is due at ``until`` (monotonic)."""
        ...

    async def respond_last(self, observed: ObservationRound) -> int:
        """Respond to the only round, and return the exit code."""
        ...


class NoResponse:
    """Prints rounds, without any action."""

    def __init__(self, printer: Printer) -> None:
        self._screen = printer

    async def respond(self, observed: ObservationRound, until: float) -> None:  # noqa: ARG002 - as of Response
        """Print the round."""
        self._screen.finish_round(observed, None)

    async def respond_last(self, observed: ObservationRound) -> int:
        """Print the round."""
        self._screen.finish_round(observed, None)
        return 0


class DryRunResponse:
    """Prints the actions that would be taken."""

    def __init__(self, printer: Printer, limits: ReliefLimits) -> None:
        self._screen = printer
        self._terms = limits

    async def respond(self, observed: ObservationRound, until: float) -> None:  # noqa: ARG002 - as of Response
        """Print the actions."""
        await self.respond_last(observed)

    async def respond_last(self, observed: ObservationRound) -> int:
        """Print the actions."""
        deeds = planned_actions(plan_relief(observed.forecasts, observed.pod_facts, self._terms))
        for deed in deeds:
            self._screen.print_action(deed)
        self._screen.finish_round(observed, deeds)
        return 0


class Execution:
    """Takes the actions; evictions that a budget blocks are retried."""

    def __init__(
        self,
        printer: Printer,
        limits: ReliefLimits,
        executor: Executor,
        inventory: NodeInventory,
        clock: Clock,
    ) -> None:
        self._screen = printer
        self._terms = limits
        self._actor = executor
        self._known = inventory
        self._clock = clock

    async def respond(self, observed: ObservationRound, until: float) -> None:
        """Take the actions that are possible before the next round, which decides anew."""
        deeds = await self._actor.execute(observed, self._known.nodes, self._terms, until)
        self._screen.finish_round(observed, deeds)

    async def respond_last(self, observed: ObservationRound) -> int:
        """Take all actions, with retries, within the time of the forecast."""
        until = self._clock.monotonic() + self._terms.within_ns / _SECOND
        deeds = await self._actor.execute(observed, self._known.nodes, self._terms, until)
        deeds += await self._actor.retry_blocked(until)
        self._screen.finish_round(observed, deeds)
        return EXIT_INCOMPLETE if _is_incomplete(deeds) else 0


def _is_incomplete(deeds: Iterable[Action]) -> bool:
    """Return whether an action failed and no later attempt succeeded."""
    last = {(deed.step.relief.node, deed.step.pod): deed.result for deed in deeds}
    return any(outcome in _FAILURES for outcome in last.values())
