"""The table of verbs that kube-scheduler calls, each with the function that decodes its body.

Decoding and deciding are without IO. A decision takes a CallContext with an immutable snapshot, so
its state cannot change meanwhile.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from extender.protocol import filter_verb, preempt_verb
from extender.protocol.request_size import RequestBounds, Steps
from extender.protocol.verb_context import CallContext, VerbResult
from policies.kubernetes.snapshot import Pod, Snapshot
from policies.preemption.policy import SchedulerRules


class DecodedCall(Protocol):
    """A decoded call: FilterArgs or PreemptArgs."""

    @property
    def pod(self) -> Pod:
        """The pod to schedule, or the preemptor."""

    @property
    def names(self) -> Collection[str]:
        """The names of the nodes of the request."""

    @property
    def ends_assumed_preemption(self) -> bool:
        """Whether the call shows that kube-scheduler does not act on an earlier answer any more."""

    def decide(self, context: CallContext, /) -> VerbResult:
        """Decide the call. Raise DeadlineExceededError if the context has no time left."""

    def refuse_all(self, reason: str, /) -> bytes:
        """Return the fallback answer that refuses every node."""

    def pass_through(self, rules: SchedulerRules, snapshot: Snapshot, /) -> bytes:
        """Return the fallback answer that accepts what kube-scheduler has found itself."""


@dataclass(frozen=True, slots=True)
class ReceivedCall:
    """A call as it was decoded, and its body."""

    args: DecodedCall
    body: bytes


class DecodeVerb(Protocol):
    """Decodes a body in steps; raises ExtenderDecodeError or ObjectError."""

    def __call__(
        self, body: bytes, rules: SchedulerRules, bounds: RequestBounds = ..., /
    ) -> Steps[DecodedCall]:
        """Decode a body that must be within the bounds, by default of any size."""


VERBS: Mapping[str, DecodeVerb] = {"filter": filter_verb.decode, "preempt": preempt_verb.decode}
