"""Means over seeds with 95 % confidence intervals.

Seeds are a small sample, so the interval is Student's: mean ± t * s / √n, where s is the standard
deviation of the n values and t the 97.5 % quantile with n - 1 degrees of freedom. It is exact if
the values of seeds are distributed normally. A bootstrap would need no such assumption, but its
intervals are too narrow for fewer than about 20 seeds, and backtests have 5 to 10. For example:

    seeds 10, 12, 17    mean 13, s = 3.61, t = 4.303, so the interval is 13 ± 8.96
"""

from __future__ import annotations

from collections.abc import Iterable
from math import fsum, sqrt
from statistics import NormalDist
from typing import Final

from msgspec import Struct

_T_QUANTILES: Final = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
"""The 97.5 % quantiles for 1 to 30 degrees of freedom: NIST/SEMATECH e-Handbook, 1.3.6.7.2."""


class Estimate(Struct, frozen=True, rename="camel"):
    """A mean over ``seeds`` values, and its interval: None with fewer than two values."""

    mean: float
    low: float | None
    high: float | None
    seeds: int

    @property
    def margin(self) -> float | None:
        """Half of the width of the interval; None without an interval."""
        return None if self.high is None else self.high - self.mean

    @property
    def excludes_zero(self) -> bool:
        """Whether there is an interval and 0 is outside of it."""
        return self.low is not None and self.high is not None and not self.low <= 0 <= self.high


def estimate(values: Iterable[float]) -> Estimate | None:
    """Return the mean of values, one for each seed, and its interval; None without values."""
    known = list(values)
    count = len(known)
    if not known:
        return None
    mean = fsum(known) / count
    if count == 1:
        return Estimate(mean, None, None, 1)
    deviation = sqrt(fsum((each - mean) ** 2 for each in known) / (count - 1))
    margin = t_quantile(count - 1) * deviation / sqrt(count)
    return Estimate(mean, mean - margin, mean + margin, count)


def t_quantile(degrees: int) -> float:
    """Return the 97.5 % quantile of Student's t with so many degrees of freedom, at least 1.

    Above 30, the first terms of its expansion at the normal quantile are exact to 5 digits:
    Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.5.
    """
    if degrees <= len(_T_QUANTILES):
        return _T_QUANTILES[degrees - 1]
    z = NormalDist().inv_cdf(0.975)
    return z + (z**3 + z) / (4 * degrees) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)
