"""The fallback policy: which answer a call gets when no decision can be made.

    reason      condition                                         evaluated
    late        the verb's deadline has passed since the header   when dequeued, and while deciding
    stale       the API server is silent for too long             when dequeued
    overloaded  too many calls wait                               on arrival

The configuration has a fallback for each reason and verb. An *error* leaves the result to
kube-scheduler, whose configuration has the extender ignorable or not. A *veto* refuses every node
for now, so that the pod waits and is retried. An *echo* passes the request through: every node of
it is feasible, and every candidate keeps its victims. A fallback is not a decision: it is neither
counted as one nor assumed.

`extender.server.service` applies the policy. `refuse_all` and `pass_through` of the verbs in
`extender.protocol` write the bodies.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from msgspec import structs

from extender.config.component_config import Config, Mode
from extender.protocol.verb_context import FallbackKind


class FallbackReason(Enum):
    """Why no decision can be made."""

    LATE = "late"
    STALE = "stale"
    OVERLOADED = "overloaded"


class DegradedError(RuntimeError):
    """No decision can be made, and the configured fallback is an error."""


@dataclass(frozen=True, slots=True)
class FallbackPolicy:
    """The deadlines by verb in seconds, and the fallbacks by reason and verb.

    The default deadline is 200 ms, the default fallback an error.
    """

    deadlines: Mapping[str, float] = field(default_factory=dict)
    stale_seconds: float = 180.0
    fallbacks: Mapping[tuple[FallbackReason, str], FallbackKind] = field(default_factory=dict)

    def deadline(self, verb: str) -> float:
        """Return the deadline of a call, in seconds after its header."""
        return self.deadlines.get(verb, 0.2)

    def fallback(self, reason: FallbackReason, verb: str) -> FallbackKind:
        """Return the fallback for a reason and a verb."""
        return self.fallbacks.get((reason, verb), FallbackKind.ERROR)

    def fallback_labels(self, verbs: Iterable[str]) -> Iterator[tuple[str, str, str]]:
        """Yield the labels of all configured fallbacks: verb, reason and fallback."""
        for verb in verbs:
            for reason in FallbackReason:
                yield verb, reason.value, self.fallback(reason, verb).value


def configured_fallbacks(config: Config) -> FallbackPolicy:
    """Return the fallback policy of a configuration; in the mode ``observe`` all are an echo."""
    deadlines: dict[str, int] = structs.asdict(config.deadline_milliseconds)
    by_reason = {
        FallbackReason.LATE: config.degraded.late,
        FallbackReason.STALE: config.degraded.stale,
        FallbackReason.OVERLOADED: config.degraded.overloaded,
    }
    return FallbackPolicy(
        {verb: milliseconds / 1000 for verb, milliseconds in deadlines.items()},
        config.stale_seconds,
        {
            (reason, verb): FallbackKind.ECHO if config.mode is Mode.OBSERVE else fallback
            for reason, fallbacks in by_reason.items()
            for verb, fallback in structs.asdict(fallbacks).items()
        },
    )
