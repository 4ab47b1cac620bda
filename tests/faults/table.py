"""The table of faults: the fault, the guaranteed behaviour, the number of runs, the results.

``docs/reliability.md`` contains it, as test_table.py asserts. ``SEEDS=1000`` in the
environment runs each row ten times as often as ``SEEDS=100``. The default is the number of examples
of the Hypothesis profile.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from hypothesis import settings

_USUAL: Final = 100
SEEDS: Final = int(os.environ.get("SEEDS", settings().max_examples))


@dataclass(frozen=True, slots=True)
class Row:
    """A fault: ``runs`` of ``what`` (lives, bodies, …) by default, in the test file ``where``.

    ``seen`` counts the results so far.
    """

    fault: str
    promise: str
    runs: int
    what: str
    where: str
    seen: str

    @property
    def times(self) -> int:
        """The number of its runs in this process."""
        return max(1, self.runs * SEEDS // _USUAL)

    @property
    def seeds(self) -> range:
        """The seeds of its runs in this process."""
        return range(self.times)


def written(rows: Iterable[Row]) -> str:
    """Write rows as a table in Markdown."""
    lines = ["| Fault | Promise | Runs | What was seen |", "|---|---|---|---|"]
    lines += [
        f"| {row.fault} | {row.promise} | {row.runs:,} {row.what} | {row.seen} |" for row in rows
    ]
    return "\n".join(lines) + "\n"


@contextmanager
def noted(seed: int) -> Iterator[None]:
    """Add the seed to the errors of the block."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"seed {seed}")
        raise


_LIVES = "lives of 15 min"
_API = "tests/faults/test_api_server.py"
_TRUE = "every decision is the reference engine's on a state that there was within `staleSeconds`"

API_DOWN: Final = Row(
    "API server down, again and again, for up to 2 min",
    f"{_TRUE}; all is caught up with afterwards, with at most 4 requests a minute and kind",
    10,
    _LIVES,
    _API,
    "no answer was wrong, nothing was lost",
)
API_SLOW: Final = Row(
    "API server slow: answers after up to 80 s, news after 20 s",
    f"{_TRUE} (and the 20 s)",
    10,
    _LIVES,
    _API,
    "no answer was wrong, nothing was lost",
)
GONE_STORM: Final = Row(
    "410 storms: watches expire, histories are forgotten",
    f"{_TRUE}; lists are not asked for more often than delays allow",
    10,
    _LIVES,
    _API,
    "no answer was wrong, nothing was lost",
)
SILENT_WATCH: Final = Row(
    "watches silently dead: open connections lead nowhere",
    f"{_TRUE}; dead watches are opened anew",
    10,
    _LIVES,
    _API,
    "no answer was wrong, nothing was lost",
)
SILENT_SERVER: Final = Row(
    "API server stuck: it opens watches and says nothing on them",
    f"{_TRUE}; then calls are answered as stale until it speaks",
    10,
    _LIVES,
    _API,
    "found and mended: opening a watch was taken for a sign of life, so that a "
    "stuck server was believed for good",
)
HALF_FRAMES: Final = Row(
    "half-written frames and lists, connections reset",
    f"{_TRUE}; half a frame is no event",
    10,
    _LIVES,
    _API,
    "no answer was wrong, nothing was lost",
)
REFUSALS: Final = Row(
    "429 with Retry-After, 500, 503 by turns",
    _TRUE,
    10,
    _LIVES,
    _API,
    "no answer was wrong, nothing was lost",
)
STALE_LISTS: Final = Row(
    "lists from a stale cache, bookmarks twice",
    f"{_TRUE}, and the copy never goes back in time",
    10,
    _LIVES,
    _API,
    "no answer was wrong, nothing was lost",
)
EVERYTHING: Final = Row(
    "nine kinds of trouble at once",
    _TRUE,
    10,
    _LIVES,
    _API,
    "no answer was wrong, nothing was lost",
)
CLOCK_SKEW: Final = Row(
    "clock skew: the host's clock jumps by up to 12 h at every look",
    "the same answers at the same times as with a clock that is right",
    5,
    "pairs of lives",
    _API,
    "no answer differed; found and mended: `reprieve_watch_silence_seconds` went by "
    "the host's clock",
)
ANY_BODY: Final = Row(
    "bodies that are cut, mangled, nested, doubled, or of other types",
    "400 and one line, or the reference engine's answer; the next call is answered",
    400,
    "bodies",
    "tests/faults/test_bodies.py",
    "found and mended: a 500 for victims with strange bytes under keys of another "
    "casing; nodes sent back that were not UTF-8",
)
ANY_BYTES: Final = Row(
    "bytes on the socket that are no HTTP, or half of it; plain and TLS",
    "4xx and one line, or an end of the connection; the next call is answered",
    300,
    "connections",
    "tests/faults/test_wire.py",
    "found and mended: refusals of several lines that repeated what was sent, in "
    "the log, too; a body that was said to be too large was waited for",
)
ANY_CONFIGURATION: Final = Row(
    "configurations and policies of any shape",
    "one line for each fault and exit code 2, or what can be served starts",
    300,
    "files of each",
    "tests/faults/test_configurations.py",
    "found and mended: tracebacks for path prefixes with braces or given twice, for "
    "some hosts, for numbers beyond 64 bits, and for policies of very long names",
)
CERTIFICATES: Final = Row(
    "rotations half done, spoiled, expired, of wrong keys, in any order",
    "the served certificate was valid when loaded; the error is reported until the files are valid",
    40,
    "histories of 20 rotations",
    "tests/faults/test_certificates.py",
    "as promised",
)
LARGE_BODY: Final = Row(
    "bodies with far more nodes, names, offers, victims or fields than the cluster has",
    "400 and one line before they are decoded; the next call is answered",
    20,
    "bodies",
    "tests/faults/test_large_bodies.py",
    "found and mended: decoding took up to 55 s of processor time, in which nothing else was "
    "answered",
)
INVENTED: Final = Row(
    "preempt calls for pods that the API server does not have, or has otherwise",
    "they are answered, and no other decision counts them",
    100,
    "series of 8 calls",
    "tests/faults/test_invented_pods.py",
    "found and mended: four of them kept an honest pod from every node for `promiseSeconds`",
)
MEMORY_FLOODS: Final = Row(
    "floods of unfinished bodies of 63 MiB, packed ones, unfinished heads, and names of 8 MiB",
    "memory stays within its budget, and is returned to 120 % when the clients have left",
    4,
    "floods",
    "tests/faults/test_memory.py",
    "found and mended: up to 3.9 GiB of memory, which stayed",
)
OPEN_FILES: Final = Row(
    "no file is left to open, at a limit of 64 files",
    "one log line, and answers as soon as connections end; `serve` refuses to start with a limit "
    "below its connections",
    120,
    "connections",
    "tests/faults/test_open_files.py",
    "found and mended: 100 tracebacks a second",
)
UNWRITABLE: Final = Row(
    "standard streams that are full or closed, and output files that cannot be written",
    "the documented exit code, and one line at most",
    14,
    "commands",
    "tests/faults/test_processes.py",
    "found and mended: tracebacks, and a recording that waited for a reader of its FIFO for ever",
)
YAML_BOMBS: Final = Row(
    "YAML files with aliases of aliases, merges of merges, and thousands of levels",
    "refused with one line that has the file and the line",
    40,
    "files",
    "tests/extender/kube/decoders/test_yaml_loader.py",
    "found and mended: commands that never ended, and a segmentation fault",
)
SIGNALS: Final = Row(
    "SIGTERM, SIGINT, SIGHUP and SIGPIPE at any moment of 13 commands, start-up included",
    "exit code 0, or 128 and the signal's number; one line at most; files are whole or absent",
    200,
    "processes",
    "tests/faults/test_processes.py",
    "found and mended: tracebacks of KeyboardInterrupt during imports, and after the event loop "
    "had been closed; SIGHUP ended servers without a regular end",
)
LEDGER_KILLED: Final = Row(
    "SIGKILL at any moment while `serve --ledger` answers four callers that never pause",
    "the ledger has each decision that was received a second before, once and whole",
    200,
    "processes",
    "tests/faults/test_ledger_kills.py",
    "found and mended: started anew, it read up to an hour of decisions before the first batch",
)
_E2E = "tests/e2e/faults"
_LOAD = "while four callers never pause"
KILLED: Final = Row(
    f"SIGKILL at any moment, {_LOAD}",
    "no answer is wrong or half; started anew, it answers the same",
    3,
    "processes",
    f"{_E2E}/test_signals.py",
    "as promised",
)
STOPPED: Final = Row(
    f"SIGTERM at any moment, {_LOAD}",
    "the same; calls that have begun are finished; it ends with 0",
    3,
    "processes",
    f"{_E2E}/test_signals.py",
    "as promised",
)
SLOW_LORIS: Final = Row(
    f"slow clients, {_LOAD}: headers and bodies byte by byte, answers not read, nothing said",
    "every call of others is answered rightly, or told 503 while slow bodies take all the room; "
    "connections and memory stay bounded",
    400,
    "clients",
    f"{_E2E}/test_clients.py",
    "as promised",
)
HALF_OPEN: Final = Row(
    f"clients that vanish, {_LOAD}: with a reset or without a word, at any byte, plain and TLS",
    "the same, and nothing of them is left",
    200,
    "clients of each",
    f"{_E2E}/test_clients.py",
    "as promised",
)
API_KILLED: Final = Row(
    f"API server killed, and back with another world at versions it had before, {_LOAD}",
    "answers go on from what is known; the other world is learned",
    2,
    "kills",
    f"{_E2E}/test_api_server.py",
    "as promised",
)
LINE_DEAD: Final = Row(
    "the line to the API server goes dead without a word, under load",
    "within `staleSeconds` calls are answered as stale; revived, all is well again",
    2,
    "deaths",
    f"{_E2E}/test_api_server.py",
    "as promised",
)
API_CERTIFICATE: Final = Row(
    "the API server's certificate has expired, at the start and under load",
    "not ready, or stale, and a line that says why; with a good one all is well by itself",
    2,
    "expiries",
    f"{_E2E}/test_api_server.py",
    "as promised",
)
OWN_CERTIFICATE: Final = Row(
    "its own certificate expires under load, and so has the next one",
    "the one before is kept, log, metric and `/readyz?verbose` alarm; a good one is taken up",
    2,
    "processes",
    f"{_E2E}/test_certificate.py",
    "as promised",
)
ANY_REQUEST: Final = Row(
    "requests of any shape to every endpoint (schemathesis, from `GET /openapi.json`)",
    "every answer is a documented one, and none is a 5xx but 503 before it is ready",
    8,
    "examples for each operation and phase",
    f"{_E2E}/test_openapi.py",
    "every answer was a documented one",
)

ROWS: Final = tuple(each for each in tuple(globals().values()) if isinstance(each, Row))
"""All of them, in the order of this file."""
