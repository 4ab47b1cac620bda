"""Moving a world's clock over HTTP.

POST /_fakeapi/clock                 return the time
POST /_fakeapi/clock?advance=90      let 90 seconds pass, with all events in them
POST /_fakeapi/clock?jump=true       go on to the next moment for which a timer is set
POST /_fakeapi/clock?factor=60       from now on a minute passes in each second; 0: stop the clock
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

import orjson

from fakeapi.api.errors import bad_request
from fakeapi.api.messages import Request, Response

_PATH = "/_fakeapi/clock"


@dataclass(frozen=True, slots=True)
class ClockRequest:
    """The changes of the clock, in this order: a new speed, a jump, seconds that pass."""

    factor: float | None = None
    jump: bool = False
    advance: float = 0.0


def parse_clock_request(request: Request) -> ClockRequest | None:
    """Parse a request to move the clock; return None for others. Raise StatusError (400)."""
    if request.path != _PATH or request.method != "POST":
        return None
    query = request.query
    factor = _number("factor", query["factor"]) if "factor" in query else None
    jump = query.get("jump", "false")
    if jump not in ("true", "false"):
        raise bad_request(f"clock: jump: expected true or false, found {jump!r}")
    advance = _number("advance", query["advance"]) if "advance" in query else 0.0
    return ClockRequest(factor, jump == "true", advance)


def describe_clock(now_ns: int, monotonic: float, factor: float) -> Response:
    """Return the clock's nanoseconds since the epoch, seconds since its start, and speed."""
    shown = {"nowNanoseconds": now_ns, "seconds": monotonic, "factor": factor}
    return Response(200, orjson.dumps(shown) + b"\n")


def _number(name: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not isfinite(number) or number < 0:
        raise bad_request(f"clock: {name}: expected a number of at least 0, found {text!r}")
    return number
