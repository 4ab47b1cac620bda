"""Plots as SVG, the same bytes for the same figures.

Where both axes are logarithmic, a cost that grows with the size to the power k is a line of slope
k, and a factor is the same distance anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log10
from typing import Final

_WIDTH, _HEIGHT = 400, 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 12, 34, 44
_LEGEND_ROW = 18
_FONT: Final = 'font-family="sans-serif" font-size="12"'


@dataclass(frozen=True, slots=True)
class Series:
    """A named line: cost by size. ``dash`` is as SVG writes it, empty for a solid line."""

    name: str
    color: str
    dash: str
    width: float
    points: Mapping[int, float] | Mapping[float, float]


@dataclass(frozen=True, slots=True)
class Panel:
    """One plot with a title; several stand side by side, on the same axes."""

    title: str
    series: Sequence[Series]


@dataclass(frozen=True, slots=True)
class Axis:
    """A logarithmic axis from ``low`` to ``high``; the marks are labelled."""

    title: str
    low: float
    high: float
    marks: Sequence[int]

    def share(self, value: float) -> float:
        """Return how far along the axis a value is, from 0 to 1."""
        return (log10(value) - log10(self.low)) / (log10(self.high) - log10(self.low))


@dataclass(frozen=True, slots=True)
class Linear:
    """An even axis from ``low`` to ``high``; the marks are labelled."""

    title: str
    low: float
    high: float
    marks: Sequence[float]

    def share(self, value: float) -> float:
        """Return how far along the axis a value is, from 0 to 1."""
        return (value - self.low) / (self.high - self.low)


Scale = Axis | Linear


def draw(panels: Sequence[Panel], across: Scale, up: Scale) -> str:
    """Return the plot; series of one name have one entry in the legend."""
    legend = {series.name: series for panel in panels for series in panel.series}
    width = _WIDTH * len(panels)
    height = _HEIGHT + _LEGEND_ROW * (-(-len(legend) // 3)) + 10
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {_FONT}>',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for index, panel in enumerate(panels):
        lines += [f'<g transform="translate({index * _WIDTH} 0)">', *_panel(panel, across, up)]
        lines.append("</g>")
    lines += _legend(list(legend.values()), width)
    return "\n".join([*lines, "</svg>", ""])


def _panel(panel: Panel, across: Scale, up: Scale) -> Iterator[str]:
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    yield _text(panel.title, (_LEFT + right) / 2, 20, "middle", ' font-weight="bold"')
    for mark in across.marks:
        x = _x(across, mark)
        yield f'<path d="M{x} {_TOP}V{bottom}" stroke="#ddd"/>'
        yield _text(f"{mark:,g}", x, bottom + 16, "middle")
    for mark in up.marks:
        y = _y(up, mark)
        yield f'<path d="M{_LEFT} {y}H{right}" stroke="#ddd"/>'
        yield _text(f"{mark:,g}", _LEFT - 6, y + 4, "end")
    yield _text(across.title, (_LEFT + right) / 2, bottom + 34, "middle")
    yield _text(up.title, _LEFT - 6, _TOP - 12, "end")
    for series in panel.series:
        yield from _line(series, across, up)


def _line(series: Series, across: Scale, up: Scale) -> Iterator[str]:
    places = [(_x(across, size), _y(up, cost)) for size, cost in sorted(series.points.items())]
    path = "L".join(f"{x} {y}" for x, y in places)
    if path:
        yield f'<path d="M{path}" fill="none" {_stroke(series)}/>'
    for x, y in places:
        yield f'<circle cx="{x}" cy="{y}" r="{series.width + 0.5}" fill="{series.color}"/>'


def _legend(entries: Sequence[Series], width: int) -> Iterator[str]:
    for index, series in enumerate(entries):
        x = 20 + index % 3 * (width - 20) // 3
        y = _HEIGHT + 8 + index // 3 * _LEGEND_ROW
        yield f'<path d="M{x} {y}h26" {_stroke(series)}/>'
        yield _text(series.name, x + 32, y + 4, "start")


def _stroke(series: Series) -> str:
    dash = f' stroke-dasharray="{series.dash}"' if series.dash else ""
    return f'stroke="{series.color}" stroke-width="{series.width}"{dash}'


def _text(text: str, x: float, y: float, anchor: str, more: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}"{more}>{text}</text>'


def _x(axis: Scale, value: float) -> float:
    return round(_LEFT + axis.share(value) * (_WIDTH - _LEFT - _RIGHT), 1)


def _y(axis: Scale, value: float) -> float:
    return round(_HEIGHT - _BOTTOM - axis.share(value) * (_HEIGHT - _TOP - _BOTTOM), 1)
