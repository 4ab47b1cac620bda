"""The table of verbs that kube-scheduler calls: how each is decoded and decided.

Both are functions without IO. A decision takes a CallContext with an immutable snapshot, so its
state cannot change meanwhile.
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
    """A decoded call: its pod, and the function that decides it.

    ``refuse_all`` and ``pass_through`` return the fallback answers; the argument of ``refuse_all``
    is the reason.
    """

    pod: Pod
    answer: Callable[[Situation], Answer]
    veto: Callable[[str], bytes]
    echo: Callable[[], bytes]


Verb = Callable[[bytes, Rules], Call]
"""Decodes a body; raises ExtenderDecodeError or ObjectError with what was expected."""


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
