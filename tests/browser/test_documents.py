"""The documents of commands in a real browser: accessible, on a phone too, printed whole."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from extender.explain.decisions import explain_preempt
from extender.ledger_page.explanation_view import explanation_document
from fakeapi.backtest.report.comparison import compare
from fakeapi.backtest.report.page import render_html
from fakeapi.replay.report import report_page
from policies.preemption.policy import DEFAULT_RULES
from tests.browser.devtools import Browser
from tests.browser.test_pages import AXE, DESKTOP, PHONE
from tests.builders.backtests import random_results
from tests.extender.ledger_page.test_explanation_document import CLUSTER, VIP
from tests.fakeapi.replay.test_report_page import differing

DOCUMENTS: Final[dict[str, Callable[[], str]]] = {
    "explanation": lambda: explanation_document(
        explain_preempt(VIP, CLUSTER, DEFAULT_RULES, None), CLUSTER, DEFAULT_RULES
    ),
    "replay": lambda: report_page(differing(3)),
    "backtest": lambda: render_html(compare(random_results(1, ("default", "cost-aware")))),
}


@pytest.mark.parametrize("name", DOCUMENTS)
async def test_documents_are_accessible_and_request_nothing(
    browser: Browser, tmp_path: Path, name: str
) -> None:
    file = tmp_path / f"{name}.html"
    file.write_text(DOCUMENTS[name]())
    async with browser.tab() as tab:
        for width, theme in ((DESKTOP, "light"), (DESKTOP, "dark"), (PHONE, "light")):
            await tab.resize(width)
            await tab.prefer(prefers_color_scheme=theme)
            await tab.open(file.as_uri())
            assert await tab.evaluate("document.documentElement.scrollWidth") == width
            await tab.evaluate(AXE)
            found = await tab.evaluate("axe.run().then(each => JSON.stringify(each.violations))")
            serious = [
                (each["id"], each["nodes"][0]["html"][:200])
                for each in json.loads(found)
                if each["impact"] in ("serious", "critical")
            ]
            assert serious == [], (width, theme)
        assert set(tab.requests) == {file.as_uri()}
        assert tab.console == []


async def test_a_document_is_printed_in_light_colours_with_all_details(
    browser: Browser, tmp_path: Path
) -> None:
    file = tmp_path / "explanation.html"
    file.write_text(DOCUMENTS["explanation"]())
    shown = "document.querySelector('.card .pods').checkVisibility()"
    back = "getComputedStyle(document.body).backgroundColor"
    async with browser.tab() as tab:
        await tab.open(file.as_uri())
        light = await tab.evaluate(back)
        await tab.prefer(prefers_color_scheme="dark")
        assert await tab.evaluate(back) != light
        assert not await tab.evaluate(shown)
        dark = [{"name": "prefers-color-scheme", "value": "dark"}]
        await tab.send("Emulation.setEmulatedMedia", media="print", features=dark)
        assert await tab.evaluate(back) == light
        assert await tab.evaluate(shown)
