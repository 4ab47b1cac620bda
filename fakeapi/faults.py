"""Faults from Python: a sentence for each, and a plan of them for a cluster.

    cluster.faults.plan(
        fault(429, retry_after=2).on("create", "pods").once(),
        fault("drop", when="after").on("create", "pods", subresources="binding").every(3),
        fault("latency", least=0.01, most=0.5).by("kubectl*").probability(0.2),
        fault("silence", after_frames=5).on("watch", "nodes").between(60, 120),
    )

They are written as a plan in a file is (:mod:`fakeapi.api.faulting.parsing`), and read by the same
reader, so a mistake is told in the same words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final

Names = str | tuple[str, ...]
Ask = Callable[[str, "dict[str, Any] | None"], dict[str, Any]]
"""Asks a world's faults: GET, POST with a plan, or DELETE; gives the plan and its counters."""

_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Fault:
    """One rule of a plan in the making; every method gives a new one."""

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
        """Limit it to requests for objects; each argument is one name or several, () is any."""
        return self._matching(
            verbs=verbs,
            resources=resources,
            subresources=subresources,
            namespaces=namespaces,
            names=names,
        )

    def at(self, paths: Names, verbs: Names = ()) -> Fault:
        """Limit it to requests by their path (a pattern of fnmatch), discovery included."""
        return self._matching(paths=paths, verbs=verbs)

    def by(self, clients: Names) -> Fault:
        """Limit it to clients by their User-Agent (a pattern of fnmatch)."""
        return self._matching(clients=clients)

    def once(self) -> Fault:
        """Strike each client's first request only."""
        return self.times(1)

    def times(self, number: int) -> Fault:
        """Strike so many requests of each client, and no more."""
        return self._with(times=number)

    def after(self, number: int) -> Fault:
        """Spare each client's first so many requests."""
        return self._with(after=number)

    def every(self, number: int) -> Fault:
        """Strike each so-manieth request of each client."""
        return self._with(every=number)

    def probability(self, value: float) -> Fault:
        """Strike with this probability, drawn by the seed."""
        return self._with(probability=value)

    def between(self, start: float, end: float) -> Fault:
        """Strike only in a time, in seconds since the plan began, on the world's clock."""
        return self._with(**{"from": start, "until": end})

    def document(self) -> dict[str, Any]:
        """Return it as a plan in a file has it."""
        return {**self.fields, **({"match": dict(self.match)} if self.match else {})}

    def _with(self, **fields: Any) -> Fault:
        return replace(self, fields={**self.fields, **fields})

    def _matching(self, **limits: Names) -> Fault:
        given = {
            name: [limit] if isinstance(limit, str) else list(limit)
            for name, limit in limits.items()
            if limit != ()
        }
        return replace(self, match={**self.match, **given})


def fault(kind: str | int, **options: Any) -> Fault:
    """Return a rule for a fault (``"drop"``, ``503`` …) with the options of its kind.

    Options are written in Python's manner: ``retry_after``, ``after_frames``.
    """
    written = {_camel(name): value for name, value in options.items()}
    return Fault({"fault": kind, **written})


class FaultControl:
    """The faults of a cluster, wherever it runs."""

    def __init__(self, ask: Ask) -> None:
        self.ask = ask

    def plan(self, *faults: Fault, seed: int | None = None) -> None:
        """Begin a plan in place of any other; the cluster's own seed counts unless one is given.

        Raises PlanError (a cluster in another process: ProcessError) naming the mistake.
        """
        document: dict[str, Any] = {"faults": [each.document() for each in faults]}
        self.ask("POST", document if seed is None else {"seed": seed, **document})

    def report(self) -> dict[str, Any]:
        """Return the plan, each rule with how many requests it ``matched`` and ``injected``."""
        return self.ask("GET", None)

    def end(self) -> dict[str, Any]:
        """End the plan, and give its report."""
        return self.ask("DELETE", None)

    @property
    def injected(self) -> tuple[int, ...]:
        """How often each fault of the plan was injected."""
        return tuple(each["injected"] for each in self.report()["faults"])


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))
