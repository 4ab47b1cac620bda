"""The management API below ``/_fakeapi/``: functions that a real API server does not have.

POST reset         remove all objects; versions continue, and every watch expires
POST load          store objects without admission (:mod:`fakeapi.apiserver.registry.manifests`)
POST compact       drop the history up to now, or up to ``?resourceVersion=N``
POST snapshot      save the present state as ``?name=N`` or as a new name, which is returned
POST restore/NAME  restore the objects of a snapshot; versions continue, and every watch expires
POST fork[/NAME]   serve a world that continues from a snapshot or from now, at the returned ``url``
POST clock         return the time of the clock; with a parameter, move the clock first:
                   ``?advance=90`` lets 90 seconds pass, with all events in them;
                   ``?jump=true`` goes on to the next moment for which a timer is set;
                   ``?factor=60`` lets a minute pass in each second from now on; 0 stops the clock
GET  export        all objects, as one ``List`` that ``load`` accepts
GET  history       every retained event, after ``?since=N``; with ``?kind=K`` the changes of that
                   kind (of ``?namespace=S`` and ``?name=N``), and the objects ``before`` them
GET  requests      the newest requests to the API, oldest first, with their bodies and the faults
                   that were injected
POST faults        start a fault plan (see :mod:`fakeapi.apiserver.testing.fault_injection`), which
                   replaces any other
GET  faults        the fault plan, and how often each fault was injected
DELETE faults      end the fault plan, and return what GET returns
POST users         issue a token to the user of the body: {"name": "alice", "groups": ["devs"]}
GET, PATCH, DELETE objects   see :mod:`fakeapi.apiserver.testing.object_requests`
GET  scheduler/trace     the scheduler's calls of extenders, their replies, and the results
DELETE scheduler/trace   clear the trace, and return what GET returns

A snapshot is a fork of the store (:mod:`fakeapi.apiserver.store.object_store`), so saving costs
next to nothing, and a snapshot holds only what has changed since.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, Protocol

import orjson

from fakeapi.apiserver.auth.authentication import AUTHENTICATED_GROUP
from fakeapi.apiserver.auth.service_account_tokens import NEVER, TokenRecord
from fakeapi.apiserver.endpoints.request_router import Api
from fakeapi.apiserver.registry.manifests import encode_export, parse_documents
from fakeapi.apiserver.store.object_store import Store
from fakeapi.apiserver.testing.fault_injection import FaultInjector, PlanError
from fakeapi.apiserver.testing.object_history import find_kind, read_history
from fakeapi.apiserver.testing.request_log import RequestLog
from fakeapi.apiserver.watch.watch_cursor import encode_event
from fakeapi.apiserver.wire.errors import StatusError, bad_request, method_not_allowed
from fakeapi.apiserver.wire.http_messages import TEXT, Request, Response, User
from fakeapi.apiserver.wire.request_bodies import read_json
from fakeapi.apiserver.wire.request_options import parse_version


class Snapshots:
    """The snapshots of one API's store."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._saved: dict[str, Store] = {}
        self._unnamed = 0

    def save(self, name: str = "") -> str:
        """Save the present state under ``name`` (or a new one), and return the name.

        An existing snapshot of that name is replaced.
        """
        if not name:
            self._unnamed += 1
            name = f"snapshot-{self._unnamed}"
        self._saved[name] = self._api.store.fork()
        return name

    def restore(self, name: str) -> None:
        """Restore the objects of a snapshot; raise StatusError (404)."""
        self._api.store.restore(self._find(name))

    def fork(self, name: str = "") -> Store:
        """Return a store that continues from a snapshot, or from now; raise StatusError (404)."""
        return self._find(name).fork() if name else self._api.store.fork()

    def _find(self, name: str) -> Store:
        saved = self._saved.get(name)
        if saved is None:
            names = ", ".join(self._saved) or "none"
            raise StatusError(404, "NotFound", f"no snapshot {name!r}; there are: {names}")
        return saved


PREFIX: Final = "/_fakeapi/"

_FAULTS: Final = "faults"
_SCHEDULER: Final = "scheduler"


class ExtenderExchanges(Protocol):
    """The recorded calls between a scheduler and its extenders."""

    def documents(self) -> list[dict[str, Any]]:
        """Return the calls as JSON."""
        ...

    def clear(self) -> None:
        """Remove all recorded calls."""
        ...


class ManagementApi:
    """The management endpoints of one API, and the log of its requests.

    Fault plans use ``now_ns`` and ``seed``. ``exchanges`` is the extender trace of a scheduler, if
    there is one.
    """

    def __init__(
        self,
        api: Api,
        now_ns: Callable[[], int] = lambda: 0,
        seed: int = 0,
        exchanges: ExtenderExchanges | None = None,
    ) -> None:
        self._exchanges = exchanges
        self.faults = FaultInjector(api, now_ns, seed)
        self.requests = RequestLog()
        self.snapshots = Snapshots(api)
        self._api = api
        self._reset_listeners: dict[object, Callable[[], None]] = {}
        self._actions: dict[str, tuple[str, Callable[[Request], Response]]] = {
            "reset": ("POST", self._reset),
            "load": ("POST", self._load),
            "compact": ("POST", self._compact),
            "snapshot": ("POST", self._snapshot),
            "restore": ("POST", self._restore),
            "fork": ("POST", self._refuse_fork),
            "clock": ("POST", self._refuse_clock),
            "export": ("GET", self._export),
            "history": ("GET", self._history),
            "requests": ("GET", self._requests),
            "users": ("POST", self._users),
        }

    def handle(self, request: Request) -> Response:
        """Serve a request below the prefix."""
        name, argument = _action_and_argument(request)
        if name == _FAULTS:
            return self._serve_faults(request)
        if (name, argument) == (_SCHEDULER, "trace") and self._exchanges is not None:
            return _serve_extender_trace(request, self._exchanges)
        if name not in self._actions:
            actions = ", ".join((*self._actions, _FAULTS, f"{_SCHEDULER}/trace"))
            return Response(404, f"no {name!r} here, only {actions}\n".encode(), TEXT)
        method, action = self._actions[name]
        try:
            if request.method != method:
                raise method_not_allowed()
            return action(request)
        except StatusError as error:
            return error.response()

    def _serve_faults(self, request: Request) -> Response:
        if request.method not in ("GET", "POST", "DELETE"):
            return method_not_allowed().response()
        try:
            if request.method == "POST":
                self.faults.read(request.body)
        except PlanError as error:
            return bad_request(str(error)).response()
        answer = _json_response(self.faults.document())
        if request.method == "DELETE":
            self.faults.end()
        return answer

    def reset(self) -> None:
        """Remove all objects except the initial ones of a cluster; every watch expires."""
        self._api.reset()
        for listener in tuple(self._reset_listeners.values()):
            listener()

    def on_reset(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call ``listener`` after each reset, until the returned function is called."""
        token = object()
        self._reset_listeners[token] = listener

        def stop() -> None:
            self._reset_listeners.pop(token, None)

        return stop

    def _reset(self, _request: Request) -> Response:
        self.reset()
        return self._version()

    def _load(self, request: Request) -> Response:
        loaded = self._api.load(parse_documents(request.body))
        return _json_response({"loaded": loaded})

    def _compact(self, request: Request) -> Response:
        version = parse_version(request.query.get("resourceVersion", ""))
        self._api.store.compact(int(version or self._api.store.version))
        return self._version()

    def add_user(self, name: str, groups: Iterable[str] = ()) -> str:
        """Return a token of a user, which never expires; another call replaces the groups."""
        token = sha256(name.encode()).hexdigest()
        user = User(name, groups=(*groups, AUTHENTICATED_GROUP))
        self._api.tokens.add(token, TokenRecord(user, NEVER))
        return token

    def _users(self, request: Request) -> Response:
        match read_json(request.body):
            case {"name": str(name), "groups": [*groups]} if name:
                return _json_response({"token": self.add_user(name, map(str, groups))})
        raise bad_request('users: expected {"name": "NAME", "groups": ["GROUP"]}')

    def describe(self, url: str) -> Response:
        """Return the URL that this world is served at, and its version."""
        return _json_response({"url": url, "resourceVersion": str(self._api.store.version)})

    def _snapshot(self, request: Request) -> Response:
        name = self.snapshots.save(request.query.get("name", ""))
        return _json_response({"name": name, "resourceVersion": str(self._api.store.version)})

    def _restore(self, request: Request) -> Response:
        self.snapshots.restore(_action_and_argument(request)[1])
        return self._version()

    def _refuse_fork(self, _request: Request) -> Response:
        return Response(404, b"this world cannot be forked over HTTP\n", TEXT)

    def _refuse_clock(self, _request: Request) -> Response:
        return Response(404, b"this world's clock cannot be moved over HTTP\n", TEXT)

    def _export(self, _request: Request) -> Response:
        return encode_export(self._api.store, self._api.kinds)

    def _history(self, request: Request) -> Response:
        if "kind" in request.query:
            return self._history_of_kind(request.query)
        since = int(parse_version(request.query.get("since", "")) or "0")
        events = [event for event in self._api.store.history() if event.version > since]
        lines = b",".join([encode_event(event).rstrip() for event in events])
        return Response(200, b'{"events":[' + lines + b"]}\n")

    def _history_of_kind(self, query: Mapping[str, str]) -> Response:
        kind = find_kind(self._api.kinds, query["kind"])
        place = query.get("namespace", ""), query.get("name", "")
        history = read_history(self._api.store, kind, *place)
        changes = [change.document() for change in history]
        return _json_response({"before": history.before, "changes": changes})

    def _requests(self, _request: Request) -> Response:
        return _json_response({"requests": [record.document() for record in self.requests]})

    def _version(self) -> Response:
        return _json_response({"resourceVersion": str(self._api.store.version)})


def requested_fork(request: Request) -> str | None:
    """Return the snapshot that a request forks ("" is the present); None for other requests."""
    action, argument = _action_and_argument(request)
    return argument if action == "fork" and request.method == "POST" else None


def _serve_extender_trace(request: Request, exchanges: ExtenderExchanges) -> Response:
    if request.method not in ("GET", "DELETE"):
        return method_not_allowed().response()
    answer = _json_response({"exchanges": exchanges.documents()})
    if request.method == "DELETE":
        exchanges.clear()
    return answer


def _action_and_argument(request: Request) -> tuple[str, str]:
    action, _, argument = request.path.removeprefix(PREFIX).partition("/")
    return action, argument


def _json_response(document: dict[str, Any]) -> Response:
    return Response(200, orjson.dumps(document) + b"\n")


_PATH = "/_fakeapi/clock"
MAX_FACTOR: Final = 1_000_000
MAX_ADVANCE: Final = 2**63 // 10**9  # seconds: the longest duration of Go


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
    factor = _number("factor", query["factor"], MAX_FACTOR) if "factor" in query else None
    jump = query.get("jump", "false")
    if jump not in ("true", "false"):
        raise bad_request(f"clock: jump: expected true or false, found {jump!r}")
    advance = _number("advance", query["advance"], MAX_ADVANCE) if "advance" in query else 0.0
    return ClockRequest(factor, jump == "true", advance)


def describe_clock(now_ns: int, monotonic: float, factor: float) -> Response:
    """Return the clock's nanoseconds since the epoch, seconds since its start, and speed."""
    document = {"nowNanoseconds": now_ns, "seconds": monotonic, "factor": factor}
    return Response(200, orjson.dumps(document) + b"\n")


def _number(name: str, text: str, most: int) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= most:
        raise bad_request(f"clock: {name}: expected a number from 0 to {most}, found {text[:40]!r}")
    return number
