"""The fault injector of one world: its current plan, and the faults injected so far.

The effects on a request are a function of the plan, its progress so far, and the request. The rules
are evaluated in the order of the plan. Each rule that injects its fault adds an effect; evaluation
ends with the first effect that ends the request (an error, a drop, a cut, a 410).

There is no shared stream of random numbers, because requests of other clients would advance it.
Each random number is the hash of its purpose, the seed, the rule, the client, and the number of the
client's request among those that the rule matched. So it is the same in any order of requests and
in any process.

A watch cache may answer these requests from an older state (``resourceVersion`` of the request):

    list    0                                  any state
    list    N, NotOlderThan or no match        at least N; without a match only if there is no limit
    watch   0                                  any state, then what followed
    watch   N with sendInitialEvents           at least N, then what followed

All other requests are answered from the current state, or continue from their own version. An older
state is never older than the requested version, nor than the history. It is the state before the
newest events of the resource, so within one plan it never goes back.

Source: k8s.io/apiserver/pkg/storage/cacher/delegator; "Resource versions" in the API concepts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from types import MappingProxyType
from typing import Any

from fakeapi.apiserver.auth.authorization import AuthorizationAttributes, authorization_attributes
from fakeapi.apiserver.endpoints.request_router import Api
from fakeapi.apiserver.kinds import ResourceRegistry
from fakeapi.apiserver.store.object_store import Store
from fakeapi.apiserver.testing.fault_injection.effects import ENDING, Conflict, Effect, Latency
from fakeapi.apiserver.testing.fault_injection.plan import FaultPlan, FaultRule, RequestMatchInput
from fakeapi.apiserver.testing.fault_injection.plan_parser import parse_plan, read_plan
from fakeapi.apiserver.wire.errors import StatusError
from fakeapi.apiserver.wire.http_messages import Request
from fakeapi.apiserver.wire.request_bodies import read_object
from fakeapi.apiserver.wire.request_options import parse_version, read_flag

_NAMESPACES = ("", "namespaces")


def match_input_of(request: Request) -> RequestMatchInput:
    """Return the input of rules for a request."""
    attributes = authorization_attributes(request, request.user)
    itself = (attributes.group, attributes.resource) == _NAMESPACES
    return RequestMatchInput(
        client=request.user_agent,
        verb=attributes.verb,
        path=request.path,
        group=attributes.group,
        resource=attributes.resource,
        subresource=attributes.subresource,
        namespace="" if itself else attributes.namespace,
        name=attributes.name,
        may_lag=_may_lag(request, attributes),
    )


def with_created_name(match_input: RequestMatchInput, request: Request) -> RequestMatchInput:
    """Add the object name of a create request, which is only in its body."""
    if (
        match_input.verb != "create"
        or match_input.name
        or not (match_input.resource and request.body)
    ):
        return match_input
    try:
        metadata = read_object(request).get("metadata")
    except StatusError:
        return match_input
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return replace(match_input, name=name) if isinstance(name, str) else match_input


def version_behind(store: Store, kinds: ResourceRegistry, request: Request, behind: int) -> int:
    """Return the version before the ``behind`` newest events of a kind.

    It is at least the version that the client requests, and at least 1, since a request for version
    0 allows any version.
    """
    attributes = authorization_attributes(request, request.user)
    kind = kinds.at(attributes.group, attributes.version, attributes.resource)
    if kind is None:
        return store.version
    events = store.since(kind, store.floor(kind))
    version = events[-min(behind, len(events))].version - 1 if events else store.version
    return max(version, int(request.query["resourceVersion"]), 1)


def as_of(request: Request, version: int) -> Request:
    """Return a list request, changed to read the state at exactly one version."""
    query = {**request.query, "resourceVersion": str(version), "resourceVersionMatch": "Exact"}
    if request.query["resourceVersion"] == "0":
        query.pop("limit", None)  # a watch cache ignores the limit for version 0
    return replace(request, query=query)


def _may_lag(request: Request, attributes: AuthorizationAttributes) -> bool:
    query = request.query
    try:
        version = parse_version(query.get("resourceVersion", ""))
    except StatusError:
        return False
    if not version or query.get("continue"):
        return False
    any_state = int(version) == 0
    if attributes.verb == "watch":
        return any_state or bool(read_flag(query, "sendInitialEvents"))
    if attributes.verb != "list":
        return False
    match = query.get("resourceVersionMatch", "")
    no_limit = query.get("limit", "") in ("", "0")
    return match == "NotOlderThan" or (not match and (any_state or no_limit))


_NONE: Mapping[tuple[int, str], InjectedCount] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class InjectedCount:
    """The requests of one client that one rule has matched, and those with an injected fault."""

    matched: int = 0
    injected: int = 0


@dataclass(frozen=True, slots=True)
class PlanProgress:
    """A plan that began at ``began_ns``; ``tallies`` by the rule's index and the client."""

    plan: FaultPlan
    began_ns: int
    tallies: Mapping[tuple[int, str], InjectedCount] = field(default_factory=lambda: _NONE)


def decide(
    progress: PlanProgress, match_input: RequestMatchInput, now_ns: int
) -> tuple[PlanProgress, Sequence[Effect]]:
    """Return the progress of the plan after a request, and the effects on the request."""
    seconds = (now_ns - progress.began_ns) / 10**9
    effects: list[Effect] = []
    counted: dict[tuple[int, str], InjectedCount] = {}
    for index, rule in enumerate(progress.plan.rules):
        if not (rule.limits.is_active_at(seconds) and rule.applies_to(match_input)):
            continue
        key = (index, match_input.client)
        before = progress.tallies.get(key, InjectedCount())
        effect = _inject(progress.plan.seed, key, rule, before)
        if isinstance(effect, Conflict):
            effect = effect.about(match_input.group_resource, match_input.name)
        counted[key] = InjectedCount(before.matched + 1, before.injected + (effect is not None))
        if effect is not None:
            effects.append(effect)
            if isinstance(effect, ENDING):
                break
    if not counted:
        return progress, ()
    return replace(progress, tallies={**progress.tallies, **counted}), effects


def _inject(
    seed: int, key: tuple[int, str], rule: FaultRule, before: InjectedCount
) -> Effect | None:
    number = before.matched + 1
    if not rule.limits.should_inject(number, before.injected, _draw(seed, key, number, "strike")):
        return None
    if isinstance(rule.effect, Latency):
        return rule.effect.sampled(_draw(seed, key, number, "latency"))
    return rule.effect


def _draw(seed: int, key: tuple[int, str], number: int, purpose: str) -> float:
    """Return a pseudorandom number from [0, 1)."""
    index, client = key
    text = f"{seed}/{index}/{number}/{purpose}/{client}"
    digest = blake2b(text.encode(errors="surrogateescape"), digest_size=8).digest()
    return (int.from_bytes(digest) >> 11) / 2**53


_NO_PLAN = PlanProgress(FaultPlan(), 0)


class FaultInjector:
    """Injects faults into the requests of one API; ``now_ns`` returns the world's time in ns.

    ``seed`` is the seed of plans that have none.
    """

    def __init__(self, api: Api, now_ns: Callable[[], int], seed: int = 0) -> None:
        self._api = api
        self._now_ns = now_ns
        self._seed = seed
        self._progress = _NO_PLAN

    def read(self, text: bytes) -> None:
        """Start a plan in JSON or YAML; it replaces the current one. Raise PlanError."""
        self._begin(read_plan(text, self._api.kinds, self._seed))

    def begin(self, document: Any) -> None:
        """Start a plan; it replaces the current one. Raise PlanError."""
        self._begin(parse_plan(document, self._api.kinds, self._seed))

    def end(self) -> None:
        """End the current plan; watches that are open keep their effects."""
        self._progress = _NO_PLAN

    def ask(self, method: str, document: Any = None) -> dict[str, Any]:
        """Start (POST), end (DELETE) or return (GET) the plan. Raise PlanError."""
        if method == "POST":
            self.begin(document)
        answer = self.document()
        if method == "DELETE":
            self.end()
        return answer

    def copy_progress(self, other: FaultInjector) -> None:
        """Continue another world's plan with its progress and seed."""
        self._seed, self._progress = other._seed, other._progress

    def effects_on(self, request: Request) -> Sequence[Effect]:
        """Return the effects on a request, and count them."""
        rules = self._progress.plan.rules
        if not rules:
            return ()
        match_input = match_input_of(request)
        if any(rule.scope.names for rule in rules):
            match_input = with_created_name(match_input, request)
        self._progress, effects = decide(self._progress, match_input, self._now_ns())
        return effects

    def compact(self) -> None:
        """Compact the history up to now."""
        self._api.store.compact(self._api.store.version)

    def version_behind(self, request: Request, behind: int) -> int:
        """Return the version from which a lagging watch cache answers a list or a watch."""
        return version_behind(self._api.store, self._api.kinds, request, behind)

    def document(self) -> dict[str, Any]:
        """Return the plan as it was given, each rule with its counts of requests by client."""
        plan, tallies = self._progress.plan, self._progress.tallies
        rules = []
        for index, rule in enumerate(plan.rules):
            clients = {
                client: tally for (rule_, client), tally in tallies.items() if rule_ == index
            }
            rules.append(
                {
                    **rule.document,
                    "matched": sum(tally.matched for tally in clients.values()),
                    "injected": sum(tally.injected for tally in clients.values()),
                    "clients": {client: _counted(tally) for client, tally in clients.items()},
                }
            )
        return {"seed": plan.seed, "faults": rules}

    def _begin(self, plan: FaultPlan) -> None:
        self._progress = PlanProgress(plan, self._now_ns())


def _counted(tally: InjectedCount) -> dict[str, int]:
    return {"matched": tally.matched, "injected": tally.injected}
