"""Renders pages: as HTML by templates, or as JSON with the same content.

All pages have a content security policy that allows only this server's own style sheets and
scripts, and no inline ones, so the templates have none.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from importlib.resources import files
from typing import Final, NamedTuple

import msgspec
from aiohttp import web

from extender.ledger_page.documents import PACKAGE, template_environment
from extender.ledger_page.view import Link, View

HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:;"
        " connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_NO_STORE: Final = {"Cache-Control": "no-store", "Vary": "Accept, Authorization, Cookie"}
_IMMUTABLE: Final = {"Cache-Control": "public, max-age=31536000, immutable"}
_TYPES: Final = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


class StaticFile(NamedTuple):
    """A style sheet or script; ``url`` has a digest of the content, so it never changes."""

    body: bytes
    content_type: str
    url: str


def load_static_files() -> dict[str, StaticFile]:
    """Return the static files by name."""
    found = {}
    for each in files(PACKAGE).joinpath("static").iterdir():
        body, suffix = each.read_bytes(), each.name.rpartition(".")[2]
        if suffix in _TYPES:
            digest = sha256(body).hexdigest()[:16]
            url = f"/ui/static/{each.name}?v={digest}"
            found[each.name] = StaticFile(body, _TYPES[suffix], url)
    return found


class Renderer:
    """Renders the views of pages; ``location`` is that of the ledger, ``menu`` leads to pages."""

    def __init__(self, location: str, menu: Sequence[Link]) -> None:
        self._files = load_static_files()
        self._environment = template_environment()
        self._environment.globals.update(
            static=lambda name: self._files[name].url, location=location, menu=menu
        )

    def response(self, request: web.Request, template: str, view: View) -> web.Response:
        """Return a page in the format that a request asks for."""
        if wants_json(request):
            return web.Response(
                body=msgspec.json.encode(view), content_type="application/json", headers=_NO_STORE
            )
        return self.html(200, template, page=view)

    def error(self, request: web.Request, status: int, problem: str) -> web.Response:
        """Return a page with one line about an error."""
        if wants_json(request):
            body = msgspec.json.encode({"error": problem})
            response = web.Response(
                body=body, status=status, content_type="application/json", headers=_NO_STORE
            )
        else:
            response = self.html(status, "error.html", code=status, problem=problem)
        if status == 503:
            response.headers["Retry-After"] = "5"
        return response

    def html(self, status: int, template: str, **values: object) -> web.Response:
        """Return a page of a template."""
        text = self._environment.get_template(template).render(values)
        return web.Response(status=status, text=text, content_type="text/html", headers=_NO_STORE)

    def static(self, name: str) -> web.Response | None:
        """Return a static file, or None."""
        found = self._files.get(name)
        if found is None:
            return None
        return web.Response(
            body=found.body,
            content_type=found.content_type,
            charset="utf-8",
            headers=_IMMUTABLE,
        )


def wants_json(request: web.Request) -> bool:
    """Return whether a request asks for JSON, by its query or its ``Accept`` header."""
    written = request.query.get("format", "")
    accepted = request.headers.get("Accept", "")
    if written in ("html", "json"):
        return written == "json"
    return "application/json" in accepted and "text/html" not in accepted
