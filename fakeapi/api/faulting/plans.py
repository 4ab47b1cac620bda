"""A plan: rules, each of which says what goes wrong, for which requests, and how often.

Every client (its User-Agent) has a count of its own with every rule. The n-th request of a client
that a rule matches is the same n-th request, whatever other clients do meanwhile; so who wants the
same faults for the same seed needs to say nothing about others.

    requests of one client that the rule matches     1  2  3  4  5  6  7  8
    after: 2                                         .  .  x  x  x  x  x  x
    after: 2, every: 2                               .  .  .  x  .  x  .  x
    after: 2, every: 2, times: 2                     .  .  .  x  .  x  .  .
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from fakeapi.api.faulting.effects import WATCHING, Effect, Staleness


@dataclass(frozen=True, slots=True)
class ResourceName:
    """A resource as a plan names it; ``group`` None stands for any group."""

    group: str | None
    plural: str

    def names(self, group: str, plural: str) -> bool:
        """Return whether this is the resource's name."""
        return plural == self.plural and self.group in (None, group)


@dataclass(frozen=True, slots=True)
class Question:
    """What a rule sees of a request.

    ``may_lag``: a lagging watch cache may answer it. ``path`` is the whole path; ``resource`` is ""
    where the path names none.
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


@dataclass(frozen=True, slots=True)
class Scope:
    """Which requests a rule is about; an empty tuple does not limit.

    ``clients``, ``namespaces``, ``names`` and ``paths`` are patterns of fnmatch. Without
    ``subresources`` a rule that names resources is about the objects themselves; without ``paths``
    no rule is about anything but objects.
    """

    clients: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    resources: tuple[ResourceName, ...] = ()
    subresources: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()

    def holds(self, question: Question) -> bool:
        """Return whether a request is in scope."""
        if self.verbs and question.verb not in self.verbs:
            return False
        if not _any_matches(self.clients, question.client):
            return False
        if self.paths:
            return _any_matches(self.paths, question.path)
        return bool(question.resource) and self._holds_object(question)

    def _holds_object(self, question: Question) -> bool:
        group, resource = question.group, question.resource
        if self.resources and not any(each.names(group, resource) for each in self.resources):
            return False
        if self.resources and not self.subresources and question.subresource:
            return False
        return (
            _names(self.subresources, question.subresource)
            and _names(self.namespaces, question.namespace)
            and _names(self.names, question.name)
        )


@dataclass(frozen=True, slots=True)
class Limits:
    """How often a rule strikes, for each client apart, and when.

    ``after``: the first so many are spared; ``every``: of the others each so-manieth is struck;
    ``times``: no more than so many (None: no end). ``start`` and ``end`` are seconds since the plan
    began, on the world's clock.
    """

    times: int | None = None
    after: int = 0
    every: int = 1
    probability: float = 1.0
    start: float = 0.0
    end: float | None = None

    def open_at(self, seconds: float) -> bool:
        """Return whether the rule counts at a time."""
        return self.start <= seconds and (self.end is None or seconds < self.end)

    def due(self, number: int, struck: int, draw: float) -> bool:
        """Return whether the ``number``-th request (from 1) is struck, ``struck`` having been."""
        if self.times is not None and struck >= self.times:
            return False
        beyond = number - self.after
        return beyond > 0 and beyond % self.every == 0 and draw < self.probability


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of a plan; ``document`` is how it was written."""

    effect: Effect
    scope: Scope
    limits: Limits
    document: dict[str, Any]

    def concerns(self, question: Question) -> bool:
        """Return whether the rule is about a request that can meet its fault."""
        if isinstance(self.effect, WATCHING) and question.verb != "watch":
            return False
        if isinstance(self.effect, Staleness) and not question.may_lag:
            return False
        return self.scope.holds(question)


@dataclass(frozen=True, slots=True)
class Plan:
    """What goes wrong, and the seed of the draws."""

    rules: tuple[Rule, ...] = ()
    seed: int = 0


def _names(patterns: tuple[str, ...], name: str) -> bool:
    return not patterns or (bool(name) and _any_matches(patterns, name))


def _any_matches(patterns: tuple[str, ...], text: str) -> bool:
    return not patterns or any(fnmatchcase(text, pattern) for pattern in patterns)
