"""Formatting of amounts, durations and trends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from extender.eviction.telling import result_message
from policies.eviction.durations import format_duration
from policies.eviction.observations import BYTE_SIGNALS
from policies.eviction.outlook import NodeForecast, ThresholdForecast
from policies.eviction.signals import Signal
from policies.eviction.trends import Trend

_SECOND: Final = 10**9
_UNITS: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_COUNTS: Final = ("", "k", "M", "G", "T", "P", "E")
_BAR_WIDTH: Final = 8
_MILLION: Final = 10**6


def format_amount(signal: Signal, number: int) -> str:
    """Format an amount of a signal with three digits: ``1.21Gi``, ``-740Mi``, ``6.5M``."""
    return (
        format_rounded(number, 1024, _UNITS)
        if signal in BYTE_SIGNALS
        else format_rounded(number, 1000, _COUNTS)
    )


def format_rounded(number: int, base: int, units: Sequence[str]) -> str:
    """Format a number with three digits, rounded towards zero; units differ by ``base``."""
    unit, left = 0, abs(number)
    while left >= 1000 * base**unit and unit < len(units) - 1:
        unit += 1
    whole, rest = divmod(left, base**unit)
    fraction = (
        f"{rest * 100 // base**unit:02}"[: 3 - len(str(whole))] if len(str(whole)) < 3 else ""
    )
    shown = f"{whole}.{fraction}".rstrip("0").rstrip(".") if fraction else str(whole)
    return f"{'-' if number < 0 else ''}{shown}{units[unit]}"


def format_seconds(nanoseconds: int) -> str:
    """Format a duration in whole seconds."""
    return format_duration(nanoseconds // _SECOND * _SECOND)


def margin_bar(forecast: ThresholdForecast) -> str:
    """Return a bar of the margin above a threshold; empty once the threshold is met."""
    full = -(-forecast.margin_millionths * _BAR_WIDTH // _MILLION)
    return "█" * full + "░" * (_BAR_WIDTH - full)


def format_trend(signal: Signal, trend: Trend | None) -> str:
    """Format a trend."""
    if trend is None:
        return ""
    change = trend.per_minute
    if not change:
        return "steady"
    return f"{'+' if change > 0 else ''}{format_amount(signal, change)}/min"


def format_time_left(forecast: ThresholdForecast) -> str:
    """Format the time until a threshold is met, and acted on."""
    met_in, acts_in = forecast.met_in_ns, forecast.acts_in_ns
    if met_in is None or acts_in is None:
        return ""
    if not met_in:
        return "met" if not acts_in else f"met, {format_seconds(acts_in)} of grace left"
    grace = acts_in - met_in
    return format_seconds(met_in) + (f" and {format_seconds(grace)} of grace" if grace else "")


def format_headline(outlook: NodeForecast, pressures: Sequence[str]) -> str:
    """Return a node, the pressures that it reports, and its forecast in one line."""
    under = f" under {', '.join(pressures)}" if pressures else ""
    return f"{outlook.node}{under}{_forecast_text(outlook)}"


def _forecast_text(outlook: NodeForecast) -> str:
    sync, leading, first = outlook.sync, outlook.leading, outlook.first_victim
    if sync.evictions:
        return f" is about to evict {', '.join(each.pod.key for each in sync.evictions)}"
    if leading is None:
        return f": {result_message(sync)}"
    acts_in = leading.acts_in_ns
    if acts_in is None:
        return ": nothing is running short" if leading.trend else ": one sample has no trend"
    when = f"in {format_seconds(acts_in)}" if acts_in >= _SECOND else "now"
    if not outlook.ranking:
        return f" acts on {leading.threshold} {when}"
    who = "no pod may go" if first is None else f"{first.pod.key} would go first"
    return f" acts on {leading.threshold} {when}; {who}"


def forecast_notes(outlook: NodeForecast) -> Iterator[str]:
    """Yield the node-level reclaim before an eviction, and what evicting the first pod regains."""
    leading, first = outlook.leading, outlook.first_victim
    if leading is None or not outlook.is_at_risk:
        return
    if outlook.reclaim:
        done = " and ".join(each.value for each in outlook.reclaim)
        yield f"before that, the node would {done}"
    if first is not None and first.usage:
        freed = format_amount(leading.threshold.signal, first.usage)
        yield f"evicting {first.pod.key} would give back {freed}"
