"""Every page of docs/ is in the site's table of contents, and no link of any page is dead."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
import yaml

from docs.hooks import GENERATED, PAGES, ROOT, Link, fetched, links, pages, place, rewritten

_HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_LINKED = re.compile(r"\[([^\]]*)\]\([^)]*\)")


@cache
def anchors(path: str) -> frozenset[str]:
    """Return the anchors of a page's headings, as repositories and mkdocs name them."""
    seen: Counter[str] = Counter()
    found = set()
    for heading in _HEADING.findall(_FENCED.sub("", (ROOT / path).read_text())):
        text = _LINKED.sub(r"\1", heading).lower()
        name = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        found.add(f"#{name}-{seen[name]}" if seen[name] else f"#{name}")
        seen[name] += 1
    return frozenset(found)


def problem(link: Link) -> str:
    """Return why a link is broken; "" if it is not."""
    if not (ROOT / link.path).is_file():
        return f"{link.path}: no such file"
    if link.anchor and link.anchor not in anchors(link.path):
        return f"{link.path}: no heading {link.anchor}"
    return ""


@pytest.mark.parametrize("page", pages())
def test_every_link_of_a_page_has_a_target(page: str) -> None:
    assert [told for link in links(page) if (told := problem(link))] == []


@pytest.mark.parametrize(
    ("link", "told"),
    [
        (Link("docs/none.md", ""), "docs/none.md: no such file"),
        (Link("docs/security.md", "#none"), "docs/security.md: no heading #none"),
        (Link("docs/security.md", "#tls"), ""),
    ],
)
def test_a_dead_link_is_reported(link: Link, told: str) -> None:
    assert problem(link) == told


def contents(nav: Any) -> Iterator[str]:
    """Return the pages of a table of contents."""
    if isinstance(nav, str):
        yield nav
    else:
        for each in nav.values() if isinstance(nav, dict) else nav:
            yield from contents(each)


def test_every_page_is_in_the_table_of_contents_once() -> None:
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
    assert Counter(contents(nav)) == Counter([*map(place, pages()), *GENERATED])


def test_links_are_rewritten_for_the_site() -> None:
    text = (
        "[a](security.md#tls) [b](../extender/config.py) [c](../CONTRIBUTING.md) [d](#here) "
        "[e](https://example.com/x.md)"
    )
    assert rewritten(text, "docs/operations.md") == (
        "[a](security.md#tls) [b](repository/extender/config.py) [c](contributing.md) [d](#here) "
        "[e](https://example.com/x.md)"
    )
    assert rewritten("[a](docs/security.md)", "README.md") == "[a](security.md)"
    assert PAGES["README.md"] == "index.md"


@pytest.mark.parametrize(
    ("element", "is_fetched"),
    [
        ('<script src="https://unpkg.com/iframe-worker/shim">', True),
        ('<script async src="//example.com/a.js">', True),
        ('<img alt="a" src="http://example.com/a.png">', True),
        ('<link rel="preconnect" href="https://fonts.gstatic.com" crossorigin>', True),
        ('<link href="https://example.com/a.css" rel="stylesheet">', True),
        ('<script src="assets/javascripts/bundle.js">', False),
        ('<link rel="stylesheet" href="assets/stylesheets/main.css">', False),
        ('<link rel="canonical" href="https://example.com/a">', False),
        ('<a href="https://keepachangelog.com">', False),
    ],
)
def test_a_page_that_fetches_from_elsewhere_is_found(element: str, is_fetched: bool) -> None:  # noqa: FBT001
    assert fetched(f"<head><meta charset=utf-8>{element}</head>") == (element if is_fetched else "")
