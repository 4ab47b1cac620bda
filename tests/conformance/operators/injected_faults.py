"""Faults that operators have to survive, and the errors that they log because of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fakeapi.faults import Fault, fault
from tests.conformance.operators.logs import KnownErrors

ALL_CALLS: Final = ("get", "list", "create", "update", "patch", "delete")

Clients = Mapping[str, tuple[str, ...]]
"""User-Agents, as a pattern → the verbs that these clients repeat after any error."""

NAMED: Final[KnownErrors] = {
    "injected fault": "500",
    "the server is currently unable to handle the request": "503",
    "request did not complete within the allotted timeout": "504",
    "connection reset by peer|EOF": "a drop, or a cut",
    "Failed to (taint NoSchedule on|remove taints from) node": "the line before it names a fault",
    "too old resource version|is too old|Expired": "an expired watch",
}
"""Patterns of lines that name an injected fault."""

_ERROR_SHARE: Final = 0.01
_WATCH_SHARE: Final = 0.08
"""A third of the watches ends early. Clients wait longer after each that does, up to a minute."""


def injected_faults(clients: Clients) -> list[Fault]:
    """Return the faults that clients meet: errors only in calls that they repeat."""
    everybody = tuple(clients)
    errors = [
        each.by(agents).probability(_ERROR_SHARE)
        for agents, verbs in clients.items()
        for each in (
            *(fault(code).on(verbs) for code in (429, 500, 503, 504)),
            fault("drop", when="before").on(verbs),
            fault("drop", when="after").on(tuple(verb for verb in verbs if verb != "create")),
        )
    ]
    watches = [
        fault("drop", when="after", after_frames=20),
        fault("cut", end="abrupt", after_frames=30),
        fault("cut", end="clean", after_frames=30),
        fault("expire", after_frames=25),
        fault("compact"),
    ]
    return [
        fault("latency", least=0.01, most=0.4).by(everybody).probability(0.05),
        *errors,
        *(each.on("watch").by(everybody).probability(_WATCH_SHARE) for each in watches),
    ]
