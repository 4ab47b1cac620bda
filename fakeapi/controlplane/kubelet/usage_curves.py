"""Usage curves: amounts over time, as scripts define them.

A curve connects points by straight lines, and is constant after its last point. A step up is two
points at one time, of which the second counts:

    stage  memory   over      points (s, Mi)                 amount
    0 s    100Mi              (0, 100)                       100 until 10 s
    10 s   300Mi    20 s      (10, 100) (30, 300)            200 at 20 s, 300 from 30 s on
    40 s   50Mi               (40, 300) (40, 50)             50 from 40 s on

Times are nanoseconds from the start of the curve, amounts are integers.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

SECOND: Final = 10**9


@dataclass(frozen=True, slots=True)
class CurveStep:
    """A change to ``amount``, from ``at`` on, over ``over`` nanoseconds."""

    at: int
    amount: int
    over: int = 0


@dataclass(frozen=True, slots=True)
class Curve:
    """An amount over time; ``points`` are (time, amount), in order, and at least one."""

    points: tuple[tuple[int, int], ...]

    def at(self, offset: int) -> int:
        """Return the amount at a time; before the first point, the amount of the first."""
        index = bisect_right(self.points, offset, key=_time)
        if index == 0:
            return self.points[0][1]
        begin, before = self.points[index - 1]
        if index == len(self.points):
            return before
        end, after = self.points[index]
        return before + (after - before) * (offset - begin) // (end - begin)

    def exceeds(self, limit: int) -> int | None:
        """Return the first time at which the amount exceeds ``limit``; None if it never does."""
        begin, before = self.points[0]
        for end, after in self.points:
            time = end
            if after > limit >= before and end > begin:
                time = begin - (before - limit - 1) * (end - begin) // (after - before)
            if after > limit and self.at(time) > limit:  # otherwise it falls at once, at that time
                return time
            begin, before = end, after
        return None


def curve_from_steps(first: int, steps: Iterable[CurveStep]) -> Curve:
    """Return the curve that begins with an amount and takes steps, in the order of their times.

    A step that begins during another ends it.
    """
    points = [(0, first)]
    for step in steps:
        value = Curve(tuple(points)).at(step.at)
        points = [point for point in points if point[0] < step.at] + [(step.at, value)]
        points.append((step.at + step.over, step.amount))
    return Curve(tuple(points))


def _time(point: tuple[int, int]) -> int:
    return point[0]
