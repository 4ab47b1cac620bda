"""Documents in the look of the page: HTML files that load nothing, for output of commands.

A document contains the style sheet of the page, has no script, and forbids the browser to load
anything. Its templates extend ``document.html`` and use the macros of the page, without links.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

PACKAGE: Final = "extender.ledger_page"


def render_document(template: str, **values: object) -> str:
    """Return the document of a template, which is given as its text."""
    style = files(PACKAGE).joinpath("static", "page.css").read_text()
    environment = template_environment()
    environment.globals.update(href=_no_reference, style=Markup(style))  # noqa: S704 - our own file
    return environment.from_string(template).render(values)


def template_environment() -> Environment:
    """Return the environment of the templates of the page; ``href`` writes a link's reference."""
    environment = Environment(
        loader=PackageLoader(PACKAGE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters["moment"] = _moment
    environment.globals["href"] = Markup(' href="{}"').format
    return environment


def _no_reference(_: str) -> str:
    return ""


def _moment(timestamp: str) -> str:
    """Return an RFC 3339 time as people read it; the pages state that all times are in UTC."""
    return timestamp.replace("T", " ").removesuffix("Z")
