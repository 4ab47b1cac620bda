"""Packed bars: what the pods of a node request of each resource, before and after a preemption.

The pods that a decision does not name are one segment: what the node's pods request, without the
victims and the spared pods. For example, on a node with 8 cores of which 7 are requested, victims
of 2 cores and a preemptor of 3:

    before   other 5   victims 2     free 1
    after    other 5   preemptor 3
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from extender.ledger.entry import LedgerCandidate, LedgerPod
from extender.ledger_page.amounts import format_amount
from extender.ledger_page.view import View

_FIRST: Final = ("cpu", "memory")


class BarSegment(View, frozen=True, kw_only=True):
    """Pods, or free room, in a bar; ``x`` and ``width`` are in percent of the bar."""

    kind: str
    label: str
    amount: str
    x: float
    width: float


class PackedBar(View, frozen=True, kw_only=True):
    """A resource of a node before and after the preemption; ``over`` if requests exceed it."""

    resource: str
    allocatable: str
    before: tuple[BarSegment, ...]
    after: tuple[BarSegment, ...]
    over: bool


def packed_bars(candidate: LedgerCandidate, preemptor: LedgerPod) -> tuple[PackedBar, ...]:
    """Return the bars of the resources that the preemptor or a victim requests."""
    asked = {name for pod in (preemptor, *candidate.victims) for name in pod.requests}
    names = [each for each in _FIRST if each in asked] + sorted(asked.difference(_FIRST))
    return tuple(
        _packed_bar(each, candidate, preemptor) for each in names if each in candidate.allocatable
    )


def _packed_bar(resource: str, candidate: LedgerCandidate, preemptor: LedgerPod) -> PackedBar:
    def of(kind: str, pods: Sequence[LedgerPod]) -> list[tuple[str, str, int]]:
        return [(kind, pod.key, pod.requests.get(resource, 0)) for pod in pods]

    spared, victims = of("spared", candidate.spared), of("victim", candidate.victims)
    named = sum(amount for _, _, amount in (*spared, *victims))
    other = max(0, candidate.requested.get(resource, 0) - named)
    staying = [("other", "other pods", other), *spared]
    before, after = [*staying, *victims], [*staying, *of("preemptor", [preemptor])]
    allocatable = candidate.allocatable[resource]
    used = [sum(amount for _, _, amount in parts) for parts in (before, after)]
    whole = max(allocatable, *used, 1)
    for parts, amount in zip((before, after), used, strict=True):
        parts.append(("free", "free", max(0, allocatable - amount)))
    return PackedBar(
        resource=resource,
        allocatable=format_amount(resource, allocatable),
        before=tuple(_segments(resource, before, whole)),
        after=tuple(_segments(resource, after, whole)),
        over=max(used) > allocatable,
    )


def _segments(
    resource: str, parts: Sequence[tuple[str, str, int]], whole: int
) -> Iterator[BarSegment]:
    begin = 0
    for kind, label, amount in parts:
        if amount:
            yield BarSegment(
                kind=kind,
                label=label,
                amount=format_amount(resource, amount),
                x=round(100 * begin / whole, 3),
                width=round(100 * amount / whole, 3),
            )
        begin += amount
