"""Counts of the calls that were not answered, by how they ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from tests.bench.budgets import Figure
from tests.load.mixes import ABOVE, CROWDED
from tests.load.picking import Named, picked, ratio
from tests.load.records import ANSWERED, CUT, FULL_HOUSE, ORDERLY, REFUSED, REPRIEVE, Call

_SLOW_SENDER: Final = "SlowSender"


def disorder(calls: Sequence[Call]) -> Named:
    """Return all counts."""
    yield from _errors(calls)
    yield from _below(calls)
    yield from _above(calls)
    yield from _crowded(calls)


def _errors(calls: Sequence[Call]) -> Named:
    """Count answers that no load excuses, in all phases: a 500 is one whenever it is given."""
    ours = [call for call in calls if call.target == REPRIEVE]
    errors = Counter(call.outcome for call in ours if call.outcome not in {*ORDERLY, CUT})
    yield "errors", _count("answers neither a decision nor a clean refusal", errors, ours)


def _below(calls: Sequence[Call]) -> Named:
    """Count what must not be below saturation: any refusal, but of those who are too slow."""
    below = [
        call for call in calls if call.phase not in {ABOVE, CROWDED} and call.target == REPRIEVE
    ]
    waited = [call for call in below if call.user != _SLOW_SENDER]
    wrong = Counter(call.outcome for call in waited if call.outcome != ANSWERED)
    yield "refused-below", _count("calls below saturation that were not answered", wrong, waited)
    senders = [call for call in below if call.user == _SLOW_SENDER]
    odd = Counter(call.outcome for call in senders if call.outcome not in {ANSWERED, REFUSED})
    yield "slow-senders", _count("slow senders not refused as late, nor answered", odd, senders)


def _above(calls: Sequence[Call]) -> Named:
    """Count refusals that are not clean; and see to it that there were any at all."""
    above = picked(calls, ABOVE)
    yield "unclean-above", _unclean("refusals above saturation that are not clean", above)
    yield "saturated", _missed("saturation that was not reached", above, REFUSED, "refused")


def _crowded(calls: Sequence[Call]) -> Named:
    """Do the same where there are more connections than may be."""
    crowd = picked(calls, CROWDED)
    yield "unclean-crowd", _unclean("calls of a crowd neither answered nor cleanly refused", crowd)
    missed, told = "limit on connections that was not reached", "told that there are too many"
    yield "full-house", _missed(missed, crowd, FULL_HOUSE, told)


def _unclean(what: str, among: Sequence[Call]) -> Figure:
    trouble = Counter(call.outcome for call in among if call.outcome not in ORDERLY)
    return _count(what, trouble, among)


def _missed(what: str, among: Sequence[Call], outcome: str, told: str) -> Figure:
    """Return whether an outcome that was to be provoked never came."""
    met = sum(call.outcome == outcome for call in among)
    return ratio(what, f"{float(not met):g}; {met:,} of {len(among):,} {told}", float(not met))


def _count(what: str, trouble: Counter[str], among: Sequence[Call]) -> Figure:
    shown = f"{trouble.total()} of {len(among):,}"
    if trouble:
        shown += f": {', '.join(f'{n} {how}' for how, n in trouble.most_common(4))}"
    return ratio(what, shown, trouble.total())
