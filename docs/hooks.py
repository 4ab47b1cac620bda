"""What makes a site of these pages; mkdocs loads this file.

The pages of the reference are generated from the code (GENERATED), when the site is built.

Pages link to each other, and to other files, as the repository shows them. In the site, those that
stand outside of docs/ have a name of their own (PAGES), and other files that are linked to are
copied below ``repository/``. Code blocks get a language (:mod:`docs.code_blocks`). A page that
would fetch anything from elsewhere when it is read breaks the build.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from docs.code_blocks import fenced

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT: Final = Path(__file__).parents[1]
PAGES: Final = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
}
"""Pages that stand elsewhere in the repository, and what they are called in the site."""

GENERATED: Final = {
    f"reference/{name}.md": f"docs.reference.{name}"
    for name in ("configuration", "commands", "metrics", "events")
}
"""Pages that are not files, and the modules that write them."""

_LINK = re.compile(r"\]\((?!\w+:)(?P<path>[^)\s#]*)(?P<anchor>#[^)\s]*)?\)")
_FETCHED = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\ssrc=[\"']?(?:https?:)?//[^>]*>"
    r"|<link\b(?=[^>]*\srel=[\"']?(?:stylesheet|preconnect|icon|preload))"
    r"[^>]*\shref=[\"']?(?:https?:)?//[^>]*>"
)


class Link(NamedTuple):
    """Where a page leads: a path of the repository, and an anchor with its # or ""."""

    path: str
    anchor: str


def pages() -> list[str]:
    """Return the paths of all pages in the repository."""
    return [*PAGES, *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]


def links(page: str) -> Iterator[Link]:
    """Return where a page of the repository leads, but for other sites."""
    for found in _LINK.finditer((ROOT / page).read_text()):
        yield Link(_target(page, found["path"]), found["anchor"] or "")


def place(path: str) -> str:
    """Return the address of a repository file within the site."""
    if path in PAGES:
        return PAGES[path]
    return path.removeprefix("docs/") if path.startswith("docs/") else f"repository/{path}"


def rewritten(markdown: str, page: str) -> str:
    """Return a page's text with its links as the site needs them."""
    here = posixpath.dirname(place(page))

    def there(found: re.Match[str]) -> str:
        anchor = found["anchor"] or ""
        if not found["path"]:
            return f"]({anchor})"
        return f"]({posixpath.relpath(place(_target(page, found['path'])), here or '.')}{anchor})"

    return _LINK.sub(there, markdown)


def fetched(html: str) -> str:
    """Return the first element of a page that is fetched from another site, or nothing."""
    found = _FETCHED.search(html)
    return "" if found is None else found[0]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what stands elsewhere in the repository, and the generated pages."""
    from mkdocs.structure.files import File  # the tests of this file do without mkdocs

    led_to = {link.path for page in pages() for link in links(page)}
    for path in sorted({*PAGES, *(each for each in led_to if not each.startswith("docs/"))}):
        files.append(File.generated(config, place(path), abs_src_path=str(ROOT / path)))
    for name, module in GENERATED.items():
        files.append(File.generated(config, name, content=import_module(module).page()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001 - mkdocs calls it so
    """Lead to where things are in the site, and give code blocks their languages."""
    elsewhere = {name: path for path, name in PAGES.items()}
    uri = page.file.src_uri
    return fenced(rewritten(markdown, elsewhere.get(uri, f"docs/{uri}")))


def on_post_build(config: MkDocsConfig) -> None:
    """Refuse a site that is not whole by itself."""
    from mkdocs.exceptions import PluginError

    for path in sorted(Path(config.site_dir).rglob("*.html")):
        element = fetched(path.read_text())
        if element:
            raise PluginError(f"{path}: fetches from elsewhere: {element}")


def _target(page: str, path: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), path)) if path else page
