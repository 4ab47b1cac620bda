"""The verbs that kube-scheduler calls, as a table: how each is decoded and answered.

Both steps are functions without IO. Answering takes a Situation, one immutable moment, so nothing
can change under a decision.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from extender import filter_verb, preempt_verb
from extender.verdict import Answer, Situation
from policies.model import Pod
from policies.rules import Rules


@dataclass(frozen=True, slots=True)
class Call:
    """A call that was understood: the pod it is about, and how to answer it.

    ``veto`` and ``echo`` give what stands in for an answer; a veto is told why.
    """

    pod: Pod
    answer: Callable[[Situation], Answer]
    veto: Callable[[str], bytes]
    echo: Callable[[], bytes]


Verb = Callable[[bytes, Rules], Call]
"""Reads a body; raises WireError or ObjectError, whose texts tell the caller what was expected."""


def _filter(body: bytes, rules: Rules) -> Call:
    args = filter_verb.decode(body, rules)
    return Call(
        args.pod,
        lambda situation: filter_verb.answer(args, situation),
        lambda why: filter_verb.veto(args, why),
        lambda: filter_verb.echo(args),
    )


def _preempt(body: bytes, rules: Rules) -> Call:
    args = preempt_verb.decode(body, rules)
    return Call(
        args.pod,
        lambda situation: preempt_verb.answer(args, situation),
        lambda _: preempt_verb.veto(),
        lambda: preempt_verb.echo(args, rules),
    )


VERBS: Mapping[str, Verb] = {"filter": _filter, "preempt": _preempt}
