"""Eviction thresholds, and their syntax in the kubelet's flags and configuration.

A configuration has four maps from a signal to a text: hard thresholds, soft thresholds, grace
periods (how long a soft threshold has to be met), and the minimum amounts to reclaim once a
threshold was met:

    evictionHard             memory.available: 100Mi      nodefs.available: 10%
    evictionSoft             memory.available: 300Mi
    evictionSoftGracePeriod  memory.available: 1m30s
    evictionMinimumReclaim   memory.available: 0          nodefs.available: 500Mi

A threshold with a grace period of zero is hard, whichever map it came from. ``0%`` and ``100%``
mean no threshold. If the kubelet enforces the node's allocatable for pods, which is the default,
hard thresholds of the node's memory also apply to the memory of all pods together.

Source: ParseThresholdConfig and the functions it calls, in pkg/kubelet/eviction/helpers.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from policies.eviction.signals import (
    MEMORY_SIGNALS,
    Percentage,
    Quantity,
    Signal,
    ThresholdValue,
    parse_percentage,
    read_quantity,
)
from policies.kubernetes.duration import parse_duration

T = TypeVar("T")
SignalTexts = Mapping[str, str]
_PODS: Final = "pods"
_DISABLED: Final = ("0%", "100%")


class ThresholdError(ValueError):
    """A threshold, grace period or minimum reclaim is invalid; the text is upstream's.

    If known, ``field`` is the map of the kubelet's configuration, and ``entry`` the signal and the
    text in it.
    """

    def __init__(self, problem: str, field: str = "", entry: tuple[str, str] | None = None) -> None:
        super().__init__(problem)
        self.field = field
        self.entry = entry


@dataclass(frozen=True, slots=True)
class Threshold:
    """A lower bound of what a signal observes; ``grace_ns`` is 0 for a hard threshold."""

    signal: Signal
    value: ThresholdValue
    grace_ns: int = 0
    min_reclaim: ThresholdValue | None = None

    @property
    def hard(self) -> bool:
        """Whether it is acted on without a grace period."""
        return self.grace_ns == 0

    def equals_ignoring_reclaim(self, other: Threshold) -> bool:
        """Return whether two thresholds are equal apart from their minimum reclaim."""
        return replace(self, min_reclaim=None) == replace(other, min_reclaim=None)

    def __str__(self) -> str:
        return f"{self.signal}<{self.value.text}"


@dataclass(frozen=True, slots=True)
class ThresholdFlags:
    """The four maps of a kubelet's configuration, as written."""

    hard: SignalTexts = field(default_factory=dict)
    soft: SignalTexts = field(default_factory=dict)
    soft_grace: SignalTexts = field(default_factory=dict)
    min_reclaim: SignalTexts = field(default_factory=dict)


def parse_thresholds(flags: ThresholdFlags, enforced: Iterable[str] = (_PODS,)) -> list[Threshold]:
    """Parse a configuration's thresholds; ``enforced`` is its enforceNodeAllocatable.

    Raise ThresholdError at the first error, in upstream's order.
    """
    hard = _parse_entries(flags.hard, _parse_threshold, "evictionHard")
    soft = _parse_entries(flags.soft, _parse_threshold, "evictionSoft")
    graces = _parse_entries(flags.soft_grace, _grace, "evictionSoftGracePeriod")
    reclaims = _parse_entries(flags.min_reclaim, _min_reclaim, "evictionMinimumReclaim")
    bounds = [each for each in hard.values() if each is not None]
    bounds.extend(_with_grace(each, graces) for each in soft.values() if each is not None)
    found = [replace(each, min_reclaim=reclaims.get(each.signal)) for each in bounds]
    return add_allocatable_thresholds(found) if _PODS in enforced else found


def add_allocatable_thresholds(thresholds: Sequence[Threshold]) -> list[Threshold]:
    """Add a copy of each hard threshold of memory for the memory of all pods together."""
    copies = [
        replace(each, signal=Signal.ALLOCATABLE_MEMORY)
        for each in thresholds
        if each.signal is Signal.MEMORY and each.hard
    ]
    return [*thresholds, *copies]


def merge_thresholds(
    thresholds: Sequence[Threshold], others: Iterable[Threshold]
) -> list[Threshold]:
    """Join two lists; thresholds of the second list that the first contains are left out."""
    joined = list(thresholds)
    for each in others:
        if not any(each.equals_ignoring_reclaim(known) for known in joined):
            joined.append(each)
    return joined


def by_eviction_priority(thresholds: Iterable[Threshold]) -> list[Threshold]:
    """Sort thresholds in the order in which they are acted on: memory first, then hard ones.

    Upstream's order within each kind is random. Here hard thresholds come first, then the order of
    the configuration applies.
    """
    return sorted(thresholds, key=lambda each: (each.signal not in MEMORY_SIGNALS, not each.hard))


def parse_signal(name: str) -> Signal:
    """Return the signal called ``name``. Raise ThresholdError if it is unknown."""
    try:
        return Signal(name)
    except ValueError:
        raise ThresholdError(f"unsupported eviction signal {name}") from None


def _parse_entries(
    texts: SignalTexts, read: Callable[[Signal, str], T], field: str
) -> dict[Signal, T]:
    """Parse every entry of a map; an error refers to its entry."""
    found = {}
    for name, text in texts.items():
        try:
            signal = parse_signal(name)
            found[signal] = read(signal, text)
        except ThresholdError as error:
            raise ThresholdError(str(error), field, (name, text)) from None
    return found


def _parse_threshold(signal: Signal, text: str) -> Threshold | None:
    """Parse a threshold; return None for one that is never met, or always."""
    return None if text in _DISABLED else Threshold(signal, _value(signal, text))


def _value(signal: Signal, text: str) -> ThresholdValue:
    if not text.endswith("%"):
        amount = _quantity(text)
        if amount.nanos <= 0:
            raise ThresholdError(f"eviction threshold {signal} must be positive: {amount.text}")
        return amount
    part = _percentage(text)
    if part.fraction < 0:
        raise ThresholdError(f"eviction percentage threshold {signal} must be >= 0%: {text}")
    if part.fraction > 1:
        raise ThresholdError(f"eviction percentage threshold {signal} must be <= 100%: {text}")
    return part


def _grace(_: Signal, text: str) -> int:
    try:
        nanoseconds = parse_duration(text)
    except ValueError as error:
        raise ThresholdError(str(error)) from None
    if nanoseconds < 0:
        raise ThresholdError(
            f"invalid eviction grace period specified: {text}, must be a positive value"
        )
    return nanoseconds


def _min_reclaim(signal: Signal, text: str) -> ThresholdValue:
    if text.endswith("%"):
        part = _percentage(text)
        if part.fraction <= 0:
            raise ThresholdError(
                f"eviction percentage minimum reclaim {signal} must be positive: {text}"
            )
        return part
    amount = _quantity(text)
    if amount.nanos < 0:
        raise ThresholdError(f"negative eviction minimum reclaim specified for {signal}")
    return amount


def _with_grace(threshold: Threshold, graces: Mapping[Signal, int]) -> Threshold:
    if threshold.signal not in graces:
        raise ThresholdError(
            f"grace period must be specified for the soft eviction threshold {threshold.signal}",
            "evictionSoft",
        )
    return replace(threshold, grace_ns=graces[threshold.signal])


def _quantity(text: str) -> Quantity:
    try:
        return read_quantity(text)
    except ValueError as error:
        raise ThresholdError(str(error)) from None


def _percentage(text: str) -> Percentage:
    try:
        return parse_percentage(text)
    except ValueError as error:
        raise ThresholdError(str(error)) from None
