"""A real Chromium, driven by its DevTools protocol over one WebSocket.

Each tab has its own browser context, so no test sees the storage of another. The tab collects what
a test asserts at its end: messages of the console, exceptions, and the URLs of all requests.
"""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Final

import aiohttp

EXECUTABLES: Final = ("chromium", "chromium-browser", "google-chrome")
_FLAGS: Final = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--no-first-run",
    "--hide-scrollbars",
    "--remote-debugging-port=0",
)
_SECONDS: Final = 30.0
_KEYS: Final = {
    "Enter": (13, "\r"),
    "Escape": (27, ""),
    "Home": (36, ""),
    "ArrowLeft": (37, ""),
    "ArrowUp": (38, ""),
    "ArrowRight": (39, ""),
    "ArrowDown": (40, ""),
}
"""The code and the text of keys that have names."""


class BrowserError(Exception):
    """The browser reports an error for a command, or an exception of a script."""


def executable() -> str | None:
    """Return the path of the browser, or None."""
    return next((path for name in EXECUTABLES if (path := shutil.which(name))), None)


@dataclass(slots=True)
class Tab:
    """A tab; ``console`` are its messages and exceptions, ``requests`` the URLs it requested."""

    browser: Browser
    session: str
    console: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    loaded: asyncio.Event = field(default_factory=asyncio.Event)

    async def send(self, method: str, **parameters: object) -> Mapping[str, Any]:
        """Send a command and return its result. Raise BrowserError."""
        return await self.browser.send(method, parameters, self.session)

    async def open(self, url: str) -> None:
        """Navigate to a URL; return when the page is loaded."""
        self.loaded.clear()
        await self.send("Page.navigate", url=url)
        await asyncio.wait_for(self.loaded.wait(), _SECONDS)

    async def evaluate(self, script: str) -> Any:
        """Return the JSON value of a script, which may be a promise. Raise BrowserError."""
        found = await self.send(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in found:
            raise BrowserError(json.dumps(found["exceptionDetails"])[:1000])
        return found["result"].get("value")

    async def wait_for(self, condition: str) -> None:
        """Return in the frame in which a condition holds. Raise BrowserError after a time."""
        await self.evaluate(
            "new Promise((done, fail) => { const late = Date.now() + 20000;"
            f" const look = () => ({condition}) ? done() : Date.now() > late"
            " ? fail(new Error('it does not hold')) : requestAnimationFrame(look); look(); })"
        )

    async def follow(self, script: str) -> None:
        """Run a script that leads to another page; return when that is loaded."""
        self.loaded.clear()
        await self.evaluate(f"{script}; undefined")
        await asyncio.wait_for(self.loaded.wait(), _SECONDS)

    async def press(self, key: str) -> None:
        """Press a key, by its name or its character."""
        code, text = _KEYS.get(key, (0, key))
        down = {"key": key, "code": key, "windowsVirtualKeyCode": code, "text": text}
        await self.send("Input.dispatchKeyEvent", type="keyDown", **down)
        await self.send("Input.dispatchKeyEvent", type="keyUp", **down)

    async def press_to_follow(self, key: str) -> None:
        """Press a key that leads to another page; return when that is loaded."""
        self.loaded.clear()
        await self.press(key)
        await asyncio.wait_for(self.loaded.wait(), _SECONDS)

    async def resize(self, width: int, height: int = 900) -> None:
        """Set the size of the viewport; a narrow one is that of a phone."""
        await self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )

    async def prefer(self, **features: str) -> None:
        """Set media features, such as ``prefers_color_scheme="dark"``."""
        pairs = [{"name": name.replace("_", "-"), "value": each} for name, each in features.items()]
        await self.send("Emulation.setEmulatedMedia", features=pairs)

    async def screenshot(self) -> bytes:
        """Return a picture of the viewport as PNG."""
        found = await self.send("Page.captureScreenshot")
        return base64.b64decode(found["data"])


class Browser:
    """A running browser."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._ids = count(1)
        self._replies: dict[int, asyncio.Future[Mapping[str, Any]]] = {}
        self._tabs: dict[str, Tab] = {}

    async def send(
        self, method: str, parameters: Mapping[str, object], session: str = ""
    ) -> Mapping[str, Any]:
        """Send a command and return its result. Raise BrowserError."""
        number = next(self._ids)
        reply = self._replies[number] = asyncio.get_running_loop().create_future()
        command: dict[str, object] = {"id": number, "method": method, "params": parameters}
        if session:
            command["sessionId"] = session
        await self._socket.send_json(command)
        found = await asyncio.wait_for(reply, _SECONDS)
        if "error" in found:
            raise BrowserError(f"{method}: {found['error']['message']}")
        result: Mapping[str, Any] = found["result"]
        return result

    @asynccontextmanager
    async def tab(self) -> AsyncIterator[Tab]:
        """Open a tab of its own context."""
        context = (await self.send("Target.createBrowserContext", {}))["browserContextId"]
        created = {"url": "about:blank", "browserContextId": context}
        target = (await self.send("Target.createTarget", created))["targetId"]
        attached = await self.send("Target.attachToTarget", {"targetId": target, "flatten": True})
        tab = self._tabs[attached["sessionId"]] = Tab(self, attached["sessionId"])
        for domain in ("Page", "Runtime", "Network", "Log"):
            await tab.send(f"{domain}.enable")
        try:
            yield tab
        finally:
            await self.send("Target.disposeBrowserContext", {"browserContextId": context})

    async def receive(self) -> None:
        """Receive replies and events until the browser ends."""
        async for message in self._socket:
            received = json.loads(message.data)
            if "id" in received:
                self._replies.pop(received["id"]).set_result(received)
            elif tab := self._tabs.get(received.get("sessionId", "")):
                _record(tab, received["method"], received["params"])


def _record(tab: Tab, method: str, event: Mapping[str, Any]) -> None:
    match method:
        case "Page.loadEventFired":
            tab.loaded.set()
        case "Network.requestWillBeSent":
            tab.requests.append(event["request"]["url"])
        case "Runtime.consoleAPICalled":
            tab.console.append(json.dumps(event["args"]))
        case "Runtime.exceptionThrown":
            tab.console.append(json.dumps(event["exceptionDetails"])[:1000])
        case "Log.entryAdded":
            entry = event["entry"]
            tab.console.append(f"{entry['level']}: {entry['text']} {entry.get('url', '')}")


@asynccontextmanager
async def start_browser(path: str, profile: Path) -> AsyncIterator[Browser]:
    """Run a browser with a new profile."""
    process = await asyncio.create_subprocess_exec(
        path,
        *_FLAGS,
        f"--user-data-dir={profile}",
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    assert process.stderr is not None
    url = await asyncio.wait_for(_socket_url(process.stderr), _SECONDS)
    drained = asyncio.create_task(process.stderr.read())
    try:
        async with (
            aiohttp.ClientSession() as client,
            client.ws_connect(url, max_msg_size=0) as socket,
        ):
            browser = Browser(socket)
            receiving = asyncio.create_task(browser.receive())
            try:
                yield browser
            finally:
                receiving.cancel()
    finally:
        process.terminate()
        await process.wait()
        await drained


async def _socket_url(stderr: asyncio.StreamReader) -> str:
    """Return the URL that the browser prints when it is ready."""
    async for line in stderr:
        head, found, url = line.decode(errors="replace").partition("DevTools listening on ")
        if found and not head:
            return url.strip()
    raise BrowserError("the browser ended before it was ready")
