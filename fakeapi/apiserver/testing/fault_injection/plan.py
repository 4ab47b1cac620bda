"""A plan of rules; each rule has an effect, a scope of requests, and limits.

Every rule counts the requests of each client (its User-Agent) separately. Requests of other clients
do not change the number of a client's request, so the same seed gives a client the same faults
whatever other clients do.

    requests of one client that the rule matches     1  2  3  4  5  6  7  8
    after: 2                                         .  .  x  x  x  x  x  x
    after: 2, every: 2                               .  .  .  x  .  x  .  x
    after: 2, every: 2, times: 2                     .  .  .  x  .  x  .  .
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from fakeapi.apiserver.testing.fault_injection.effects import (
    CONFLICT_VERBS,
    WATCHING,
    Conflict,
    Effect,
    Staleness,
)


@dataclass(frozen=True, slots=True)
class ResourceName:
    """The name of a resource in a plan; ``group`` None matches any group."""

    group: str | None
    plural: str

    def matches(self, group: str, plural: str) -> bool:
        """Return whether the name matches a resource."""
        return plural == self.plural and self.group in (None, group)


@dataclass(frozen=True, slots=True)
class RequestMatchInput:
    """The attributes of a request that rules match.

    ``may_lag``: a watch cache that lags may answer the request. ``path`` is the whole path;
    ``resource`` is "" for a path without a resource.
    """

    client: str
    verb: str
    path: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    may_lag: bool = False

    @property
    def group_resource(self) -> str:
        """The resource with its group, such as ``deployments.apps``."""
        return f"{self.resource}.{self.group}" if self.group else self.resource


@dataclass(frozen=True, slots=True)
class Scope:
    """The requests that a rule matches; an empty tuple matches all.

    ``clients``, ``namespaces``, ``names`` and ``paths`` are patterns of fnmatch. Without
    ``subresources``, a rule with ``resources`` does not match requests for subresources; without
    ``paths``, a rule matches only requests for resources.
    """

    clients: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    resources: tuple[ResourceName, ...] = ()
    subresources: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()

    def matches(self, match_input: RequestMatchInput) -> bool:
        """Return whether a request is in scope."""
        if self.verbs and match_input.verb not in self.verbs:
            return False
        if not _any_matches(self.clients, match_input.client):
            return False
        if self.paths:
            return _any_matches(self.paths, match_input.path)
        return bool(match_input.resource) and self._matches_object(match_input)

    def _matches_object(self, match_input: RequestMatchInput) -> bool:
        group, resource = match_input.group, match_input.resource
        if self.resources and not any(each.matches(group, resource) for each in self.resources):
            return False
        if self.resources and not self.subresources and match_input.subresource:
            return False
        return (
            _is_named(self.subresources, match_input.subresource)
            and _is_named(self.namespaces, match_input.namespace)
            and _is_named(self.names, match_input.name)
        )


@dataclass(frozen=True, slots=True)
class Limits:
    """The number and the time of injected faults, for each client separately.

    ``after``: the number of first matches without a fault; ``every``: a fault at each n-th match
    after those; ``times``: the maximum number of faults (None: no limit). ``start`` and ``end`` are
    seconds since the plan began, on the world's clock.
    """

    times: int | None = None
    after: int = 0
    every: int = 1
    probability: float = 1.0
    start: float = 0.0
    end: float | None = None

    def is_active_at(self, seconds: float) -> bool:
        """Return whether the rule is active at a time."""
        return self.start <= seconds and (self.end is None or seconds < self.end)

    def should_inject(self, number: int, injected: int, draw: float) -> bool:
        """Return whether request ``number`` (from 1) gets a fault, after ``injected`` faults."""
        if self.times is not None and injected >= self.times:
            return False
        beyond = number - self.after
        return beyond > 0 and beyond % self.every == 0 and draw < self.probability


@dataclass(frozen=True, slots=True)
class FaultRule:
    """A rule of a plan; ``document`` is the rule as it was given."""

    effect: Effect
    scope: Scope
    limits: Limits
    document: dict[str, Any]

    def applies_to(self, match_input: RequestMatchInput) -> bool:
        """Return whether a request is in scope and the effect can apply to it."""
        if isinstance(self.effect, WATCHING) and match_input.verb != "watch":
            return False
        if isinstance(self.effect, Staleness) and not match_input.may_lag:
            return False
        if isinstance(self.effect, Conflict) and match_input.verb not in CONFLICT_VERBS:
            return False
        return self.scope.matches(match_input)


@dataclass(frozen=True, slots=True)
class FaultPlan:
    """The rules of a plan, and the seed of its random numbers."""

    rules: tuple[FaultRule, ...] = ()
    seed: int = 0


def _is_named(patterns: tuple[str, ...], name: str) -> bool:
    return not patterns or (bool(name) and _any_matches(patterns, name))


def _any_matches(patterns: tuple[str, ...], text: str) -> bool:
    return not patterns or any(fnmatchcase(text, pattern) for pattern in patterns)
