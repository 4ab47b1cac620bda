"""Who may read the page, its headers, and invalid requests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from aiohttp.test_utils import TestClient, TestServer

from extender.ledger.storage.queries import Ledger
from extender.ledger.storage.sqlite_database import Access, open_sqlite
from extender.ledger_page.access import SESSION_SECONDS, is_allowed_host, local_path
from extender.ledger_page.app import PageOptions, build_ui_app
from tests.extender.ledger_page.conftest import TOKEN, OpenPage, PageClock
from tests.extender.ledger_page.records import DECISION, record

PAGES = ("/ui/", DECISION, "/ui/pods/batch/a-1", "/ui/pressure")


@pytest.mark.parametrize("path", [*PAGES, "/ui/pods?pod=a/b", "/ui/nothing", "/"])
async def test_every_page_needs_the_token(open_page: OpenPage, path: str) -> None:
    async with open_page([record()]) as page:
        found = await page.http.get(path)
        assert found.status == 401
        assert found.headers["WWW-Authenticate"].startswith("Bearer")
        text = await found.text()
        assert 'action="/ui/login"' in text
        assert "batch" not in text.replace("/ui/pods/batch/a-1", "")
        wrong = {"Authorization": "Bearer wrong", "Accept": "application/json"}
        refused = await page.http.get(path, headers=wrong)
        assert (refused.status, list(await refused.json())) == (401, ["error"])


async def test_a_login_begins_a_session_that_expires(open_page: OpenPage) -> None:
    async with open_page([record()]) as page:
        form = {"token": TOKEN, "next": DECISION}
        found = await page.http.post("/ui/login", data=form, allow_redirects=False)
        assert (found.status, found.headers["Location"]) == (303, DECISION)
        cookie = found.headers["Set-Cookie"]
        assert TOKEN not in cookie
        for attribute in ("HttpOnly", "SameSite=Strict", "Path=/ui"):
            assert attribute in cookie
        assert (await page.http.get("/ui/")).status == 200
        page.clock.seconds = SESSION_SECONDS + 1
        assert (await page.http.get("/ui/")).status == 401


@pytest.mark.parametrize("cookie", ["", "x", "9999999999.", "9999999999.0123", "é.é"])
async def test_a_forged_session_is_refused(open_page: OpenPage, cookie: str) -> None:
    async with open_page() as page:
        headers = {"Cookie": f"reprieve-ledger={cookie}"}
        assert (await page.http.get("/ui/", headers=headers)).status == 401


async def test_a_wrong_token_is_answered_with_the_form(open_page: OpenPage) -> None:
    async with open_page() as page:
        found = await page.http.post("/ui/login", data={"token": "wrong"})
        assert found.status == 401
        assert "This is not the token." in await found.text()
        assert "Set-Cookie" not in found.headers


async def test_after_ten_failures_a_client_waits_for_a_minute(open_page: OpenPage) -> None:
    async with open_page() as page:
        for _ in range(10):
            assert (await page.http.post("/ui/login", data={"token": "wrong"})).status == 401
        found = await page.http.post("/ui/login", data={"token": TOKEN})
        assert (found.status, found.headers["Retry-After"]) == (429, "60")
        bearer = {"Authorization": f"Bearer {TOKEN}"}
        assert (await page.http.get("/ui/", headers=bearer)).status == 429
        page.clock.seconds = 61
        assert (await page.http.get("/ui/", headers=bearer)).status == 200


async def test_without_a_token_there_is_no_page(tmp_path: Path) -> None:
    database = await open_sqlite(tmp_path / "ledger.db", Access.WRITE)
    with pytest.raises(ValueError, match="needs a token"):
        build_ui_app(Ledger(database), PageOptions(""), PageClock())
    await database.close()


@pytest.mark.parametrize("path", PAGES)
async def test_pages_forbid_what_is_not_their_own(open_page: OpenPage, path: str) -> None:
    async with open_page([record()]) as page:
        found = await page.http.get(path, headers={"Authorization": f"Bearer {TOKEN}"})
        html = await found.text()
    policy = found.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; style-src 'self'; script-src 'self'")
    assert "unsafe" not in policy
    assert found.headers["X-Content-Type-Options"] == "nosniff"
    assert found.headers["Referrer-Policy"] == "no-referrer"
    assert found.headers["Cache-Control"] == "no-store"
    assert re.search(r"<style|\sstyle=|\son[a-z]+=|javascript:", html) is None
    assert all('src="/ui/static/' in each for each in re.findall(r"<script[^>]*>", html))
    assert re.findall(r'(?:href|src|action)="(?![/#?])', html) == []


async def test_static_files_need_no_token_and_never_change(open_page: OpenPage) -> None:
    async with open_page() as page:
        html = await (await page.http.get("/ui/")).text()
        urls = re.findall(r'"(/ui/static/[^"]*)"', html)
        for url in urls:
            found = await page.http.get(url)
            assert (found.status, "immutable" in found.headers["Cache-Control"]) == (200, True)
        assert {url.partition("?")[0].rpartition("/")[2] for url in urls} == {
            "icon.svg",
            "page.css",
            "page.js",
            "theme.js",
        }
        for path in ("../app.py", "%2e%2e/app.py", "..%2fapp.py", "nothing.js"):
            assert (await page.http.get(f"/ui/static/{path}")).status in (401, 404)


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("localhost", True),
        ("localhost:8443", True),
        ("127.0.0.1:1", True),
        ("[::1]:8443", True),
        ("[::1]", True),
        ("ledger.example:443", True),
        ("LEDGER.example", True),
        ("evil.example", False),
        ("localhost.evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("localhost:evil", False),
        ("", False),
    ],
)
def test_only_known_hosts_are_served(host: str, allowed: bool) -> None:  # noqa: FBT001
    assert is_allowed_host(host, {"ledger.example"}) is allowed


async def test_another_host_is_refused(open_page: OpenPage) -> None:
    async with open_page(hosts=frozenset({"Ledger.example"})) as page:
        headers = {"Authorization": f"Bearer {TOKEN}", "Host": "evil.example"}
        found = await page.http.get("/ui/", headers=headers)
        assert found.status == 421
        assert "evil.example" in await found.text()
        for known in ("Ledger.Example", "ledger.example:443", "127.0.0.1"):
            found = await page.http.get("/ui/", headers={**headers, "Host": known})
            assert found.status == 200


@pytest.mark.parametrize(
    ("written", "path"),
    [
        ("/ui/pressure?range=7d", "/ui/pressure?range=7d"),
        ("", "/ui/"),
        ("//evil.example", "/ui/"),
        ("https://evil.example/ui/", "/ui/"),
        ("/ui/\\evil", "/ui/"),
        ("/ui/\r\nX: y", "/ui/"),
    ],
)
def test_a_login_returns_only_to_a_page(written: str, path: str) -> None:
    assert local_path(written) == path


@pytest.mark.parametrize(
    ("path", "status", "line"),
    [
        ("/ui/decisions/00000000000000ff", 404, "the ledger has no decision 00000000000000ff"),
        ("/ui/decisions/nothing", 400, "'nothing' is not the ID of a decision"),
        ("/ui/decisions/ffffffffffffffff", 400, "is not the ID of a decision"),
        ("/ui/pods/batch/gone", 404, "no decision that names the pod batch/gone"),
        ("/ui/pods/Batch/a-1", 400, "pod: 'Batch/a-1': a lowercase RFC 1123 label"),
        ("/ui/?range=2h", 400, "range: '2h'; expected one of 1h, 24h, 7d, 30d"),
        ("/ui/?since=noon", 400, "since: 'noon' is not a time; expected a time such as"),
        (
            "/ui/?since=2026-01-02&until=2026-01-01",
            400,
            "since: 2026-01-02T00:00:00Z is not before",
        ),
        ("/ui/?range=7d&since=2026-01-02", 400, "expected either range, or since and until"),
        ("/ui/?since=0001-01-01", 400, "is not a time"),
        ("/ui/?until=9999-01-01", 400, "is not a time"),
        ("/ui/?before=xyz", 400, "before: 'xyz' is not the ID of a decision"),
        ("/ui/?by=nod", 400, "by: 'nod'; expected one of namespace, class, team"),
        ("/ui/?namespace=A_B", 400, "namespace: 'A_B': a lowercase RFC 1123 label"),
        ("/ui/?node=-", 400, "node: '-': a lowercase RFC 1123 subdomain"),
        ("/ui/?namespac=a", 400, "did you mean namespace?"),
        ("/ui/?by=team&by=class", 400, "by: given twice"),
        ("/ui/?format=xml", 400, "format: 'xml'; expected html or json"),
        ("/ui/pressure?by=class", 400, "unknown parameter 'by'"),
        ("/ui/elsewhere", 404, "there is no page '/ui/elsewhere'"),
    ],
)
async def test_invalid_requests_get_one_line(
    open_page: OpenPage, path: str, status: int, line: str
) -> None:
    async with open_page([record()]) as page:
        problem = (await page.json(path, status=status))["error"]
        html = await page.html(path, status=status)
    assert line in problem
    assert "\n" not in problem
    assert 'role="alert"' in html


async def test_other_methods_are_refused(open_page: OpenPage) -> None:
    async with open_page([record()]) as page:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        found = await page.http.delete(DECISION, headers=headers)
        assert (found.status, found.headers["Allow"]) == (405, "GET, HEAD")
        found = await page.http.head(DECISION, headers=headers)
        assert (found.status, await found.text()) == (200, "")
        large = {"token": "x" * 10_000}
        assert (await page.http.post("/ui/login", data=large)).status == 413


async def test_a_ledger_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    database = await open_sqlite(path, Access.WRITE)  # without tables
    app = build_ui_app(Ledger(database), PageOptions(TOKEN), PageClock())
    async with TestClient(TestServer(app)) as client:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        found = await client.get("/ui/", headers=headers)
        assert (found.status, found.headers["Retry-After"]) == (503, "5")
        assert "the ledger cannot be read" in await found.text()
        found = await client.get("/ui/?format=json", headers=headers)
        assert str(path) in (await found.json())["error"]
    await database.close()
