"""Webhook calls from within a pure function, and their addresses.

The API is a function from a request to an answer, and waits for nothing. Where it needs the answers
of webhooks, it *suspends*: it raises :class:`CallsPendingError` with the calls. The caller
(:mod:`fakeapi.apiserver.webhooks.client`) makes them concurrently, and then repeats the whole
request with the answers. Before that nothing has been written. Time and randomness are repeated
from attempt to attempt, so the second attempt does the same as the first, and continues.

    attempt 1    convert ... suspended: call A
    attempt 2    convert (answer A), review ... suspended: calls B and C
    attempt 3    convert (answer A), review (answers B and C), write, answer

A generator that continues where it stopped would not do: other requests are served during a call,
and objects that were read before it may have changed. Repeating the request reads everything again,
so a stale base is rejected, and a changed object is sent again (another body is another call), as
upstream does when its storage finds a conflict. Steps that must run only once, such as one of
several deletions, use :meth:`PendingCalls.once`; so do expensive steps that read nothing that can
change, such as decoding a body.

A function of this process may replace a webhook: a plain one is called immediately, an ``async``
one by the caller. Other webhooks are called at the URL of their client configuration, or at that of
its Service. There is no network between pods here, so a Service resolves to its configured URL, or
to the first ready address of its EndpointSlices or Endpoints, or to its external name. The serving
certificate must in any case be for the Service (``name.namespace.svc``).

Source: k8s.io/apiserver/pkg/util/webhook/client.go, pkg/util/proxy/proxy.go.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import iscoroutinefunction
from typing import Any, Final, TypeVar

import orjson

from fakeapi.apiserver.kinds import BUILTIN, ResourceInfo
from fakeapi.apiserver.objects.metadata import IdAndTimeSources
from fakeapi.apiserver.store.dry_run import ObjectReader
from fakeapi.apiserver.store.object_store import Document

T = TypeVar("T")
Review = dict[str, Any]
WebhookFunction = Callable[[Review], "Review | Awaitable[Review]"]
"""Takes a review and returns it with a response; raises WebhookCallError for a failed call."""

_ANSWER: Final = ("kind", "apiVersion", "response")

MAX_CALLS: Final = 1_000
"""The maximum number of calls of one request; only a loop would make more."""


@dataclass(frozen=True, slots=True)
class WebhookCall:
    """A POST of JSON; ``host`` is the name in the certificate ("": the host of the URL).

    ``hook`` is a function that is called in place of the URL.
    """

    url: str
    body: bytes
    ca_bundle: bytes = b""
    host: str = ""
    timeout_seconds: int = 30
    hook: WebhookFunction | None = None


class WebhookCallError(Exception):
    """A call failed; the message is that of Go's client, without the URL."""


class InvalidReviewError(WebhookCallError):
    """The answer of a call is not a valid review; the message is that of client-go."""


class CallsPendingError(Exception):
    """The request cannot continue until the calls have been made."""

    def __init__(self, calls: Sequence[WebhookCall]) -> None:
        super().__init__(", ".join(call.url for call in calls))
        self.calls = calls


@dataclass(slots=True)
class RequestAttempts:
    """State that the attempts at one request share: answers, times and random values.

    The values are recorded in the order in which an attempt requests them, each with the position
    of the value that follows it: a value whose source requests others is followed by the next one
    after those. A position is None while its source has not returned.

        once("created", create)   0: ("created", entry, 3)
          uid()                   1: ("uid", "8c1f…", 2)
          timestamp()             2: (0, "2026-…", 3)
    """

    answers: dict[WebhookCall, bytes | WebhookCallError] = field(default_factory=dict)
    _values: list[tuple[Hashable, Any, int] | None] = field(default_factory=list)
    _next: int = 0

    def begin(self) -> None:
        """Start another attempt."""
        self._next = 0

    def recall(self, what: Hashable, source: Callable[[], T]) -> T:
        """Return the value of the previous attempt at this position, or a new one.

        An attempt that differs from the previous one, because the objects have changed meanwhile,
        gets new values from the first difference on.
        """
        values, position = self._values, self._next
        recorded = values[position] if position < len(values) else None
        value: T
        if recorded is not None:
            known, value, following = recorded
            if known == what:
                self._next = following
                return value
            del values[position:]
        if position == len(values):
            values.append(None)
        self._next = position + 1
        value = source()
        values[position] = (what, value, self._next)
        return value


class PendingCalls:
    """Webhook calls of the API, and the answers that have arrived."""

    def __init__(self) -> None:
        self._attempts: RequestAttempts | None = None

    def attempt(self, attempts: RequestAttempts) -> PendingCalls:
        """Start an attempt, which ends with the ``with`` block; the block must not await."""
        attempts.begin()
        self._attempts = attempts
        return self

    def __enter__(self) -> None:
        """Do nothing: :meth:`attempt` has started the attempt."""

    def __exit__(self, *_failure: object) -> None:
        self._attempts = None

    def call(self, call: WebhookCall) -> bytes:
        """Return the body of the answer; raise CallsPendingError, WebhookCallError."""
        [answer] = self.call_all([call])
        if isinstance(answer, WebhookCallError):
            raise answer
        return answer

    def call_all(self, calls: Sequence[WebhookCall]) -> list[bytes | WebhookCallError]:
        """Return the bodies of the answers, or the errors; raise CallsPendingError."""
        answers = [self._answer(call) for call in calls]
        missing = [c for c, answer in zip(calls, answers, strict=True) if answer is None]
        if missing and self._attempts is not None:
            raise CallsPendingError(missing)
        undriven = WebhookCallError("webhooks are called only while a request is served")
        return [undriven if answer is None else answer for answer in answers]

    def once(self, what: Hashable, act: Callable[[], T]) -> T:
        """Return the result of ``act``, which runs in the first attempt that reaches this point."""
        return act() if self._attempts is None else self._attempts.recall(what, act)

    def repeatable(self, sources: IdAndTimeSources) -> IdAndTimeSources:
        """Return sources that return the same values in all attempts at one request."""
        return IdAndTimeSources(
            lambda offset: self.once(offset, lambda: sources.timestamp(offset)),
            lambda: self.once("uid", sources.uid),
            lambda: self.once("suffix", sources.suffix),
            lambda: self.once("now", sources.now),
        )

    def _answer(self, call: WebhookCall) -> bytes | WebhookCallError | None:
        """Return the known answer of a call, or that of a plain function."""
        present = None if self._attempts is None else self._attempts.answers.get(call)
        if present is not None or call.hook is None or iscoroutinefunction(call.hook):
            return present
        answer = _call_function(call.hook, call.body)
        if self._attempts is not None:
            self._attempts.answers[call] = answer
        return answer


def _call_function(function: WebhookFunction, body: bytes) -> bytes | WebhookCallError:
    try:
        return encode_answer(function(orjson.loads(body)))
    except WebhookCallError as error:
        return error


def encode_answer(answer: Any) -> bytes:
    """Encode the answer of a function, without the request, which many repeat and none reads."""
    if isinstance(answer, dict):
        answer = {name: answer[name] for name in _ANSWER if name in answer}
    return orjson.dumps(answer)


Json = Mapping[str, Any]
ServiceUrls = Mapping[str, str]
"""URLs of services, by ``namespace/name``."""


@dataclass(frozen=True, slots=True)
class ResolvedAddress:
    """The ``url`` of a webhook and the ``host`` of its certificate ("": the host of the URL)."""

    url: str
    host: str = ""


def resolve_address(
    objects: ObjectReader, services: ServiceUrls, client_config: Json
) -> ResolvedAddress:
    """Return the address of a webhook's client configuration; raise WebhookCallError."""
    service = client_config.get("service")
    if service is None:
        return ResolvedAddress(_normalized_url(client_config["url"]))
    configured = services.get(f"{service['namespace']}/{service['name']}")
    if configured is not None:
        return ResolvedAddress(
            f"{configured.rstrip('/')}{_path(service)}", _certificate_name(service)
        )
    place = _service_endpoint(
        objects, service["namespace"], service["name"], service.get("port", 443)
    )
    return ResolvedAddress(f"https://{place}{_path(service)}", _certificate_name(service))


def display_url(client_config: Json) -> str:
    """Return the URL of a client configuration as error messages write it."""
    service = client_config.get("service")
    if service is None:
        return _normalized_url(client_config["url"])
    return f"https://{_certificate_name(service)}:{service.get('port', 443)}{_path(service)}"


def _certificate_name(service: Json) -> str:
    return f"{service['name']}.{service['namespace']}.svc"


def _path(service: Json) -> str:
    return _absolute_path(service.get("path") or "")


def _normalized_url(url: str) -> str:
    """Return a URL as Go's client writes it: with a path, and without a trailing slash."""
    scheme, _, rest = url.partition("://")
    place, _, path = rest.partition("/")
    return f"{scheme}://{place}{_absolute_path(path)}"


def _absolute_path(path: str) -> str:
    return f"/{path.strip('/')}"


def _service_endpoint(objects: ObjectReader, namespace: str, name: str, port: int) -> str:
    entry = objects.get(_kind("", "services"), f"{namespace}/{name}")
    if entry is None:
        raise WebhookCallError(f'service "{name}" not found')
    spec = entry.document().get("spec") or {}
    if spec.get("type") == "ExternalName":
        return f"{spec.get('externalName')}:{port}"
    service_port = next((p for p in spec.get("ports") or () if p.get("port") == port), None)
    if service_port is None:
        raise WebhookCallError(f'no service port {port} found for service "{name}"')
    for ip, target in _endpoints(objects, namespace, name, service_port.get("name") or ""):
        return f"[{ip}]:{target}" if ":" in ip else f"{ip}:{target}"
    raise WebhookCallError(f'no endpoints available for service "{name}"')


def _endpoints(
    objects: ObjectReader, namespace: str, name: str, port: str
) -> Iterator[tuple[str, int]]:
    for entry in objects.entries(_kind("discovery.k8s.io", "endpointslices"), namespace):
        if entry.labels.get("kubernetes.io/service-name") == name:
            yield from _slice_addresses(entry.document(), port)
    legacy = objects.get(_kind("", "endpoints"), f"{namespace}/{name}")
    for subset in (legacy.document().get("subsets") or ()) if legacy is not None else ():
        for target in _ports(subset, port):
            for address in subset.get("addresses") or ():
                yield address["ip"], target


def _slice_addresses(document: Document, port: str) -> Iterator[tuple[str, int]]:
    for target in _ports(document, port):
        for endpoint in document.get("endpoints") or ():
            if (endpoint.get("conditions") or {}).get("ready", True):
                for address in endpoint.get("addresses") or ():
                    yield address, target


def _ports(holder: Json, name: str) -> list[int]:
    return [p["port"] for p in holder.get("ports") or () if (p.get("name") or "") == name]


def _kind(group: str, plural: str) -> ResourceInfo:
    found = BUILTIN.at(group, "v1", plural)
    assert found is not None, plural
    return found
