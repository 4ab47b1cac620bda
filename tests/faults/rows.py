"""The rows of the table of faults."""

from __future__ import annotations

from typing import Final

from tests.faults.table import Row

_LIVES = "lives of 15 min"
_API = "tests/faults/test_api_server.py"
_TRUE = "every decision is the reference engine's on a state that there was within `staleSeconds`"

API_DOWN: Final = Row(
    "API server down, again and again, for up to 2 min",
    f"{_TRUE}; all is caught up with afterwards, with at most 4 requests a minute and kind",
    60,
    _LIVES,
    _API,
    "",
)
API_SLOW: Final = Row(
    "API server slow: answers after up to 80 s, news after 20 s",
    f"{_TRUE} (and the 20 s)",
    60,
    _LIVES,
    _API,
    "",
)
GONE_STORM: Final = Row(
    "410 storms: watches expire, histories are forgotten",
    f"{_TRUE}; lists are not asked for more often than delays allow",
    60,
    _LIVES,
    _API,
    "",
)
SILENT_WATCH: Final = Row(
    "watches silently dead: open connections lead nowhere",
    f"{_TRUE}; dead watches are opened anew",
    60,
    _LIVES,
    _API,
    "",
)
SILENT_SERVER: Final = Row(
    "API server stuck: it opens watches and says nothing on them",
    f"{_TRUE}; then calls are answered as stale until it speaks",
    60,
    _LIVES,
    _API,
    "",
)
HALF_FRAMES: Final = Row(
    "half-written frames and lists, connections reset",
    f"{_TRUE}; half a frame is no event",
    60,
    _LIVES,
    _API,
    "",
)
REFUSALS: Final = Row(
    "429 with Retry-After, 500, 503 by turns",
    _TRUE,
    60,
    _LIVES,
    _API,
    "",
)
STALE_LISTS: Final = Row(
    "lists from a stale cache, bookmarks twice",
    f"{_TRUE}, and the copy never goes back in time",
    60,
    _LIVES,
    _API,
    "",
)
EVERYTHING: Final = Row(
    "nine kinds of trouble at once",
    _TRUE,
    60,
    _LIVES,
    _API,
    "",
)
CLOCK_SKEW: Final = Row(
    "clock skew: the host's clock jumps by up to 12 h at every look",
    "the same answers at the same times as with a clock that is right",
    30,
    "pairs of lives",
    "tests/faults/test_clock_skew.py",
    "",
)
ANY_BODY: Final = Row(
    "bodies that are cut, mangled, nested, doubled, or of other types",
    "400 and one line, or the reference engine's answer; the next call is answered",
    2000,
    "bodies",
    "tests/faults/test_bodies.py",
    "",
)
ANY_BYTES: Final = Row(
    "bytes on the socket that are no HTTP, or half of it; plain and TLS",
    "4xx and one line, or an end of the connection; the next call is answered",
    600,
    "connections",
    "tests/faults/test_wire.py",
    "",
)
ANY_CONFIGURATION: Final = Row(
    "configurations and policies of any shape",
    "one line for each fault and exit code 2, or what can be served starts",
    1500,
    "files",
    "tests/faults/test_configurations.py",
    "",
)
CERTIFICATES: Final = Row(
    "rotations half done, spoiled, expired, of wrong keys, in any order",
    "what is shown was valid when it was taken up; trouble is told until the files are good",
    40,
    "histories of 20 rotations",
    "tests/faults/test_certificates.py",
    "",
)
