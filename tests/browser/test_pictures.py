"""The pictures of README and docs/ledger.md: ``PICTURES=write make browser`` writes them.

They show the page over a generated ledger with a fixed seed and a fixed clock. Without the option,
the tests compare new pictures with those of the repository.

Fonts and their rendering differ between machines, so two correct pictures differ in every letter,
and where a line is folded, all below it is moved. So they are compared in cells of 16 by 16 pixels,
by the mean colour of each: text becomes a light grey in any font, while bars, boxes and backgrounds
keep their colour. A cell differs if the other picture has no cell of its colour (24 of 255 for each
channel) within four rows and one column. With five other fonts, or letters that are 2% larger, 0%
to 3% of the cells differ; without the bars or the candidates 11% to 12%, without the style sheet 8%
to 97%, in the other theme 97% and more. The words are not compared: other tests do that.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from extender.kube.rest.clock import Clock
from tests.browser.devtools import Tab
from tests.extender.ledger_page.conftest import PageClock

FOLDER: Final = Path(__file__).parents[2] / "docs" / "images"
LARGEST: Final = 200_000
"""Bytes of a picture, since each clone of the repository has it."""
MOST_DIFFERENT: Final = 0.05
"""The share of cells that may differ."""

_COMPARE: Final = """(async pictures => {
    const [one, other] = await Promise.all(pictures.map(async text => {
        const bytes = Uint8Array.from(atob(text), each => each.charCodeAt(0));
        const image = await createImageBitmap(new Blob([bytes]));
        const width = Math.ceil(image.width / 16), height = Math.ceil(image.height / 16);
        const context = new OffscreenCanvas(width, height).getContext('2d');
        context.imageSmoothingQuality = 'high';
        context.drawImage(image, 0, 0, width, height);
        const cells = context.getImageData(0, 0, width, height).data;
        return {size: `${image.width}x${image.height}`, width, height, cells};
    }));
    if (one.size !== other.size) return 1;
    const equal = (a, b) => [0, 1, 2].every(
        each => Math.abs(one.cells[a * 4 + each] - other.cells[b * 4 + each]) <= 24);
    const isFound = (row, column, test) => {
        for (let y = Math.max(0, row - 4); y <= Math.min(one.height - 1, row + 4); y++)
            for (let x = Math.max(0, column - 1); x <= Math.min(one.width - 1, column + 1); x++)
                if (test(y * one.width + x)) return true;
        return false;
    };
    let different = 0;
    for (let row = 0; row < one.height; row++)
        for (let column = 0; column < one.width; column++) {
            const cell = row * one.width + column;
            const found = isFound(row, column, near => equal(cell, near))
                && isFound(row, column, near => equal(near, cell));
            different += !found;
        }
    return different / (one.width * one.height);
})"""


@dataclass(frozen=True)
class Picture:
    """A picture of a page; ``path`` may name the ``decision`` of the pictures, or its ``pod``."""

    path: str
    theme: str
    width: int
    height: int


PICTURES: Final[Mapping[str, Picture]] = {
    "ledger-timeline": Picture("/ui/?range=7d&by=class", "light", 1200, 800),
    "ledger-decision": Picture("{decision}", "dark", 1200, 1230),
    "ledger-phone": Picture("{pod}", "light", 390, 844),
}


@pytest.fixture
def clock() -> Clock:
    return PageClock()


async def taken(tab: Tab, base: str, picture: Picture) -> bytes:
    """Return a new picture, without the footer: it has the path of the ledger."""
    await tab.resize(picture.width, picture.height)
    await tab.prefer(prefers_color_scheme=picture.theme, prefers_reduced_motion="reduce")
    document = await tab.evaluate("fetch('/ui/?range=7d&format=json').then(each => each.json())")
    row = next(
        each
        for each in document["decisions"]
        if "-train/" in each["pod"]["key"] and each["decidedBy"] and each["result"] == "bound"
    )
    urls = {"decision": row["url"], "pod": row["victims"][0]["url"]}
    await tab.open(base + picture.path.format_map(urls))
    await tab.evaluate("document.querySelector('footer').remove()")
    return await tab.screenshot()


async def difference(tab: Tab, one: bytes, other: bytes) -> float:
    """Return the share of cells that differ."""
    texts = json.dumps([base64.b64encode(each).decode() for each in (one, other)])
    found: float = await tab.evaluate(f"{_COMPARE}({texts})")
    return found


@pytest.mark.parametrize("name", PICTURES)
async def test_the_pictures_show_the_page(tab: Tab, base: str, name: str) -> None:
    file, new = FOLDER / f"{name}.png", await taken(tab, base, PICTURES[name])
    if os.environ.get("PICTURES") == "write":
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(new)
    old = file.read_bytes()
    assert len(old) <= LARGEST
    share = await difference(tab, old, new)
    assert share <= MOST_DIFFERENT, f"{share:.0%} differ; PICTURES=write writes {file.name} anew"


async def test_another_font_is_no_difference_and_another_look_is(tab: Tab, base: str) -> None:
    picture = PICTURES["ledger-timeline"]
    shown = await taken(tab, base, picture)
    style = "document.querySelector('link[rel=stylesheet]')"
    await tab.evaluate(f"{style}.sheet.insertRule('html {{ font-family: serif !important }}')")
    assert await difference(tab, shown, await tab.screenshot()) <= MOST_DIFFERENT
    await tab.evaluate(f"{style}.disabled = true")
    assert await difference(tab, shown, await tab.screenshot()) > MOST_DIFFERENT
    await tab.evaluate(f"{style}.disabled = false; document.querySelector('.bars').remove()")
    assert await difference(tab, shown, await tab.screenshot()) > MOST_DIFFERENT
