"""How calls ended that were not answered, as figures: counts of what must not be."""

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
    """Give all counts."""
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
    what = "refusals above saturation that are not clean"
    yield "unclean-above", _count(what, _disorderly(above), above)
    refused = sum(call.outcome == REFUSED for call in above)
    shown = f"{float(not refused):g}; {refused:,} of {len(above):,} refused"
    yield "saturated", ratio("saturation that was not reached", shown, float(not refused))


def _crowded(calls: Sequence[Call]) -> Named:
    """Do the same where there are more connections than may be."""
    crowd = picked(calls, CROWDED)
    what = "calls of a crowd neither answered nor cleanly refused"
    yield "unclean-crowd", _count(what, _disorderly(crowd), crowd)
    full = sum(call.outcome == FULL_HOUSE for call in crowd)
    shown = f"{float(not full):g}; {full:,} of {len(crowd):,} told that there are too many"
    yield "full-house", ratio("limit on connections that was not reached", shown, float(not full))


def _disorderly(calls: Sequence[Call]) -> Counter[str]:
    return Counter(call.outcome for call in calls if call.outcome not in ORDERLY)


def _count(what: str, trouble: Counter[str], among: Sequence[Call]) -> Figure:
    shown = f"{trouble.total()} of {len(among):,}"
    if trouble:
        shown += f": {', '.join(f'{n} {how}' for how, n in trouble.most_common(4))}"
    return ratio(what, shown, trouble.total())
