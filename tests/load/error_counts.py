"""Counts of the calls that were not answered, by how they ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from tests.bench.budgets import Figure, NamedFigures, untimed
from tests.load.mixes import ABOVE, CROWDED
from tests.load.records import ANSWERED, CUT, FULL_HOUSE, ORDERLY, REFUSED, REPRIEVE, Call, select

_SLOW_SENDER: Final = "SlowSender"


def error_counts(calls: Sequence[Call]) -> NamedFigures:
    """Return all counts."""
    yield from _errors(calls)
    yield from _below(calls)
    yield from _above(calls)
    yield from _crowded(calls)


def _errors(calls: Sequence[Call]) -> NamedFigures:
    """Count answers that no load excuses, such as 500, in all phases."""
    ours = [call for call in calls if call.target == REPRIEVE]
    errors = Counter(call.outcome for call in ours if call.outcome not in {*ORDERLY, CUT})
    yield "errors", _count("answers neither a decision nor a clean refusal", errors, ours)


def _below(calls: Sequence[Call]) -> NamedFigures:
    """Count refusals below saturation, where only slow senders may be refused."""
    below = [
        call for call in calls if call.phase not in {ABOVE, CROWDED} and call.target == REPRIEVE
    ]
    waited = [call for call in below if call.user != _SLOW_SENDER]
    wrong = Counter(call.outcome for call in waited if call.outcome != ANSWERED)
    yield "refused-below", _count("calls below saturation that were not answered", wrong, waited)
    senders = [call for call in below if call.user == _SLOW_SENDER]
    unexpected = Counter(
        call.outcome for call in senders if call.outcome not in {ANSWERED, REFUSED}
    )
    yield (
        "slow-senders",
        _count("slow senders not refused as late, nor answered", unexpected, senders),
    )


def _above(calls: Sequence[Call]) -> NamedFigures:
    """Count refusals that are not clean, and check that there were refusals."""
    above = select(calls, ABOVE)
    yield "unclean-above", _unclean("refusals above saturation that are not clean", above)
    yield "saturated", _missed("saturation that was not reached", above, REFUSED, "refused")


def _crowded(calls: Sequence[Call]) -> NamedFigures:
    """Count them for more connections than the limit."""
    crowd = select(calls, CROWDED)
    yield "unclean-crowd", _unclean("calls of a crowd neither answered nor cleanly refused", crowd)
    missed, suffix = "limit on connections that was not reached", "told that there are too many"
    yield "full-house", _missed(missed, crowd, FULL_HOUSE, suffix)


def _unclean(what: str, among: Sequence[Call]) -> Figure:
    errors = Counter(call.outcome for call in among if call.outcome not in ORDERLY)
    return _count(what, errors, among)


def _missed(what: str, among: Sequence[Call], outcome: str, suffix: str) -> Figure:
    """Return 1 if an outcome that was to be provoked never occurred, else 0."""
    met = sum(call.outcome == outcome for call in among)
    return untimed(what, f"{float(not met):g}; {met:,} of {len(among):,} {suffix}", float(not met))


def _count(what: str, errors: Counter[str], among: Sequence[Call]) -> Figure:
    shown = f"{errors.total()} of {len(among):,}"
    if errors:
        shown += f": {', '.join(f'{n} {how}' for how, n in errors.most_common(4))}"
    return untimed(what, shown, errors.total())
