"""Fault rules in Python, and the fault plan of a cluster.

    cluster.faults.plan(
        fault(429, retry_after=2).on("create", "pods").once(),
        fault("drop", when="after").on("create", "pods", subresources="binding").every(3),
        fault("latency", least=0.01, most=0.5).by("kubectl*").probability(0.2),
        fault("silence", after_frames=5).on("watch", "nodes").between(60, 120),
    )

A rule is converted to the document that a plan file contains, and parsed by the same parser
(:mod:`fakeapi.apiserver.testing.fault_injection.plan_parser`), so errors have the same text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final

Names = str | tuple[str, ...]
SendFaultRequest = Callable[[str, "dict[str, Any] | None"], dict[str, Any]]
"""Sends GET, POST with a plan, or DELETE to a world's fault injector; returns plan and counters."""

_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Fault:
    """One rule of a fault plan; every method returns a new rule."""

    fields: Mapping[str, Any]
    match: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)

    def on(
        self,
        verbs: Names = (),
        resources: Names = (),
        *,
        subresources: Names = (),
        namespaces: Names = (),
        names: Names = (),
    ) -> Fault:
        """Limit the rule to requests for objects; an argument is one name or several, () is any."""
        return self._matching(
            verbs=verbs,
            resources=resources,
            subresources=subresources,
            namespaces=namespaces,
            names=names,
        )

    def at(self, paths: Names, verbs: Names = ()) -> Fault:
        """Limit the rule to request paths (fnmatch patterns), discovery included."""
        return self._matching(paths=paths, verbs=verbs)

    def by(self, clients: Names) -> Fault:
        """Limit the rule to clients by User-Agent (fnmatch patterns)."""
        return self._matching(clients=clients)

    def once(self) -> Fault:
        """Inject into each client's first matching request only."""
        return self.times(1)

    def times(self, number: int) -> Fault:
        """Inject into at most ``number`` requests of each client."""
        return self._with(times=number)

    def after(self, number: int) -> Fault:
        """Skip the first ``number`` requests of each client."""
        return self._with(after=number)

    def every(self, number: int) -> Fault:
        """Inject into every ``number``-th request of each client."""
        return self._with(every=number)

    def probability(self, value: float) -> Fault:
        """Inject with this probability; the plan's seed determines the outcome."""
        return self._with(probability=value)

    def between(self, start: float, end: float) -> Fault:
        """Inject only between two times, in seconds on the world's clock since the plan began."""
        return self._with(**{"from": start, "until": end})

    def document(self) -> dict[str, Any]:
        """Return the rule as it is written in a plan file."""
        return {**self.fields, **({"match": dict(self.match)} if self.match else {})}

    def _with(self, **fields: Any) -> Fault:
        return replace(self, fields={**self.fields, **fields})

    def _matching(self, **limits: Names) -> Fault:
        match_fields = {
            name: [limit] if isinstance(limit, str) else list(limit)
            for name, limit in limits.items()
            if limit != ()
        }
        return replace(self, match={**self.match, **match_fields})


def fault(kind: str | int, **options: Any) -> Fault:
    """Return a rule for a fault (``"drop"``, ``503`` …) with the options of its kind.

    Option names are in snake case: ``retry_after``, ``after_frames``.
    """
    written = {_camel(name): value for name, value in options.items()}
    return Fault({"fault": kind, **written})


class FaultControl:
    """Controls fault injection of a cluster in this process, a thread or another process."""

    def __init__(self, ask: SendFaultRequest) -> None:
        self.send = ask

    def plan(self, *faults: Fault, seed: int | None = None) -> None:
        """Start a plan in place of any other; without ``seed`` the cluster's own seed is used.

        Raises PlanError for an invalid rule.
        """
        document: dict[str, Any] = {"faults": [each.document() for each in faults]}
        self.send("POST", document if seed is None else {"seed": seed, **document})

    def report(self) -> dict[str, Any]:
        """Return the plan, each rule with how many requests it ``matched`` and ``injected``."""
        return self.send("GET", None)

    def end(self) -> dict[str, Any]:
        """End the plan and return its report."""
        return self.send("DELETE", None)

    @property
    def injected(self) -> tuple[int, ...]:
        """How often each fault of the plan was injected."""
        return tuple(each["injected"] for each in self.report()["faults"])


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))
