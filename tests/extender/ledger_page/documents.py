"""Reads documents as a browser does."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Final

LOADING: Final = frozenset({"src", "srcset", "href", "xlink:href", "action", "data", "poster"})
"""The attributes by which an element loads something, or leads elsewhere."""
FILLS: Final = ("url(#victim-fill)", "url(#preemptor-fill)")


class DocumentParser(HTMLParser):
    """Collects the text of a document; asserts that nothing in it loads anything."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        self._tag = ""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self._tag = tag
        assert tag not in ("script", "link", "iframe", "img", "base"), tag
        for name, value in attributes:
            assert name not in LOADING, (tag, name)
            assert "url(" not in (value or "") or value in FILLS

    def handle_endtag(self, tag: str) -> None:
        self._tag = "" if tag == self._tag else self._tag

    def handle_data(self, data: str) -> None:
        if self._tag == "style":
            assert "url(" not in data
            assert "@import" not in data
        else:
            self.text += f" {data}"


def text_of(document: str) -> str:
    """Return the text of a document that loads nothing, with single spaces."""
    parser = DocumentParser()
    parser.feed(document)
    parser.close()
    return " ".join(parser.text.split()).replace("/ ", "/")
