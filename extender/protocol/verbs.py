"""The table of verbs that kube-scheduler calls: how each is decoded and decided.

Both are functions without IO. A decision takes a CallContext with an immutable snapshot, so its
state cannot change meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from extender.protocol import filter_verb, preempt_verb
from extender.protocol.verb_context import CallContext, VerbResult
from policies.kubernetes.snapshot import Pod
from policies.preemption.policy import SchedulerRules


@dataclass(frozen=True, slots=True)
class DecodedCall:
    """A decoded call: its pod, and the function that decides it.

    ``refuse_all`` and ``pass_through`` return the fallback answers; the argument of ``refuse_all``
    is the reason.
    """

    pod: Pod
    decide: Callable[[CallContext], VerbResult]
    refuse_all: Callable[[str], bytes]
    pass_through: Callable[[], bytes]


DecodeVerb = Callable[[bytes, SchedulerRules], DecodedCall]
"""Decodes a body; raises ExtenderDecodeError or ObjectError with what was expected."""


def _filter(body: bytes, rules: SchedulerRules) -> DecodedCall:
    args = filter_verb.decode(body, rules)
    return DecodedCall(
        args.pod,
        lambda situation: filter_verb.decide(args, situation),
        lambda why: filter_verb.refuse_all(args, why),
        lambda: filter_verb.pass_through(args),
    )


def _preempt(body: bytes, rules: SchedulerRules) -> DecodedCall:
    args = preempt_verb.decode(body, rules)
    return DecodedCall(
        args.pod,
        lambda situation: preempt_verb.decide(args, situation),
        lambda _: preempt_verb.refuse_all(),
        lambda: preempt_verb.pass_through(args, rules),
    )


VERBS: Mapping[str, DecodeVerb] = {"filter": _filter, "preempt": _preempt}
