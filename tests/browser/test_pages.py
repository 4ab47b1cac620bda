"""The page in a real browser: content, keys, themes, accessibility, live updates.

Each test also asserts that the console has no message, and that no other server is asked.
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any, Final

import pytest

from tests.browser.devtools import Tab

AXE: Final = files("axe_core_python").joinpath("axe.min.js").read_text()
PHONE: Final = 360
DESKTOP: Final = 1280
PAGES: Final = ("timeline", "decision", "pod", "pressure", "nodes", "error")


async def first_row(tab: Tab) -> dict[str, Any]:
    """Return the newest decision that has a closest rival."""
    document = await tab.evaluate("fetch('/ui/?range=7d&format=json').then(each => each.json())")
    found: dict[str, Any] = next(each for each in document["decisions"] if each["decidedBy"])
    return found


async def path_of(tab: Tab, page: str) -> str:
    row = await first_row(tab)
    paths: dict[str, str] = {
        "timeline": "/ui/?range=7d&by=class",
        "decision": f"{row['url']}?spare=0",
        "pod": row["victims"][0]["url"],
        "pressure": "/ui/pressure?range=30d",
        "nodes": "/ui/nodes",
        "error": "/ui/decisions/00000000000000ff",
    }
    return paths[page]


async def open_page(tab: Tab, base: str, page: str) -> None:
    await tab.open(base + await path_of(tab, page))
    if page == "nodes":
        await tab.wait_for("!document.getElementById('map').hidden")
    if page == "error":
        tab.console.clear()  # the answer 404 is reported there


async def focused(tab: Tab) -> Any:
    return await tab.evaluate("document.activeElement.getAttribute('href')")


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_pages_are_accessible_and_fit_the_width(
    tab: Tab, base: str, theme: str, width: int
) -> None:
    await tab.resize(width)
    await tab.prefer(prefers_color_scheme=theme)
    for page in PAGES:
        await open_page(tab, base, page)
        assert await tab.evaluate("document.documentElement.scrollWidth") == width, page
        await tab.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
        await tab.evaluate(AXE)
        found = await tab.evaluate("axe.run().then(each => JSON.stringify(each.violations))")
        serious = [
            (each["id"], each["nodes"][0]["html"][:200], each["nodes"][0]["failureSummary"][:300])
            for each in json.loads(found)
            if each["impact"] in ("serious", "critical")
        ]
        assert serious == [], page


async def test_the_answer_is_three_clicks_away(tab: Tab) -> None:
    await tab.follow("document.querySelector('td.evicted a.pod').click()")
    assert await tab.evaluate("document.getElementById('advice').innerText.includes('priority')")
    await tab.follow("document.querySelector('#advice a.button').click()")
    text = await tab.evaluate("document.getElementById('spare').innerText")
    assert "With a priority of" in text


async def test_keys_walk_through_a_list_and_back(tab: Tab, base: str) -> None:
    await tab.open(f"{base}/ui/?range=7d")
    hrefs = await tab.evaluate(
        "[...document.querySelectorAll('[data-item]')].map(each => each.getAttribute('href'))"
    )
    walked = []
    for key in ("j", "j", "ArrowDown", "k", "ArrowUp"):
        await tab.press(key)
        walked.append(await focused(tab))
    assert walked == [hrefs[place] for place in (0, 1, 2, 1, 0)]
    await tab.press_to_follow("Enter")
    assert await tab.evaluate("location.pathname") == hrefs[0]
    await tab.press("Escape")
    await tab.wait_for("location.search === '?range=7d'")


async def test_a_slash_searches_for_a_pod(tab: Tab) -> None:
    row = await first_row(tab)
    await tab.press("/")
    for character in row["pod"]["key"]:
        await tab.press(character)
    await tab.press_to_follow("Enter")
    assert await tab.evaluate("location.pathname") == row["pod"]["url"]


async def test_a_question_mark_shows_the_keys(tab: Tab) -> None:
    await tab.press("?")
    assert await tab.evaluate("document.getElementById('keys').open")
    await tab.press("Escape")
    assert not await tab.evaluate("document.getElementById('keys').open")


async def test_a_theme_is_kept(tab: Tab, base: str) -> None:
    await tab.prefer(prefers_color_scheme="dark")
    back = "getComputedStyle(document.body).backgroundColor"
    dark = await tab.evaluate(back)
    await tab.press("t")
    light = await tab.evaluate(back)
    assert light != dark
    await tab.open(f"{base}/ui/pressure")
    assert await tab.evaluate(back) == light


async def test_new_decisions_appear_and_the_focus_stays(tab: Tab) -> None:
    await tab.press("j")
    kept = await focused(tab)
    await tab.evaluate(
        "document.getElementById('live').dataset.newest = '0';"
        "document.querySelector('#live tbody tr:last-child').remove();"
        "window.before = document.querySelectorAll('#live tbody tr').length;"
        "document.dispatchEvent(new Event('visibilitychange'))"
    )
    await tab.wait_for("document.querySelectorAll('#live tbody tr').length > window.before")
    assert await focused(tab) == kept
    assert await tab.evaluate("document.getElementById('status').textContent") == (
        "There are new decisions."
    )


async def test_pages_work_without_scripts(tab: Tab, base: str) -> None:
    await tab.send("Emulation.setScriptExecutionDisabled", value=True)
    await tab.open(f"{base}/ui/?range=7d")
    row = await tab.send("DOM.getDocument", depth=-1)
    assert "data-item" in json.dumps(row)


async def test_the_map_of_nodes_answers_to_keys(tab: Tab, base: str) -> None:
    await open_page(tab, base, "nodes")
    await tab.evaluate("document.getElementById('nodes').focus()")
    await tab.press("Home")
    await tab.press("ArrowRight")
    label = await tab.evaluate("document.getElementById('node-label').textContent")
    assert label.startswith("node-0001: ")
    await tab.press_to_follow("Enter")
    assert await tab.evaluate("location.search") == "?node=node-0001"
