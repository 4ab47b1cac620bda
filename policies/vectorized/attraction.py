"""InterPodAffinity on columns.

Adding a pod back can only violate anti-affinity. It cannot violate affinity: a pod that counts for
affinity counts in every domain of its node. So the dry run marks the pods that repel the preemptor
or that it repels as conflicting, and evaluates affinity once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from policies.columns.cells import CLASS, TRAITS
from policies.columns.coded import Bools, Ints
from policies.decision import Rejection
from policies.filtering import Check, InterPodAffinity, inter_pod_affinity
from policies.filtering.counting import Domain
from policies.model import AffinityTerm, Pod
from policies.vectorized.asking import Asked, Footing, Twin
from policies.vectorized.room import Barred
from policies.vectorized.tallies import Tally, tally, topology
from policies.vectorized.verdicts import Verdicts
from policies.vectorized.view import View


def affinity(each: InterPodAffinity, asked: Asked) -> Twin:
    """Return the vectorized InterPodAffinity."""
    pod, namespaces = asked.pod, asked.snapshot.namespaces
    repelled = _repelled(asked)
    if not pod.affinity and not pod.anti_affinity and not any(t.counts.any() for t in repelled):
        return Twin()
    found = _Affinity(
        each.name,
        asked,
        attracted=_attracted(asked),
        attracts_itself=all(term.matches(pod, namespaces) for term in pod.affinity),
        averse=_averse(asked),
        repelled=repelled,
    )
    return Twin((found,), reads_other_pods=True)


@dataclass(frozen=True)
class _Affinity:
    name: str
    asked: Asked
    attracted: tuple[Tally, ...]
    attracts_itself: bool
    averse: tuple[Tally, ...]
    repelled: tuple[Tally, ...]

    def judge(self, view: View, verdicts: Verdicts) -> None:
        if self.attracted:
            verdicts.refuse(~self._is_attracted(view), inter_pod_affinity.NO_AFFINITY)
        _keep_away(self.averse, view, verdicts, inter_pod_affinity.ANTI_AFFINITY)
        _keep_away(self.repelled, view, verdicts, inter_pod_affinity.REPELLED)

    def footing(self, view: View) -> Footing | None:
        tallies = (*self.averse, *self.repelled)
        if not tallies:
            return None
        barred = np.zeros_like(view.away)
        for each in tallies:
            barred |= (each.cell_weights(view) > 0) & each.labelled(view)
        return Barred(barred) if barred.any() else None

    def check(self) -> Check:
        """Return the same constraint as the reference engine's filter plugin."""
        return inter_pod_affinity.counted_check(
            self.asked.pod,
            self.asked.snapshot.namespaces,
            _by_domain(self.attracted),
            _by_domain(self.averse),
            _by_domain(self.repelled),
        )

    def _is_attracted(self, view: View) -> Bools:
        everywhere = np.ones(len(view), np.bool_)
        found = everywhere.copy()
        anywhere = np.zeros(len(view), np.bool_)
        for each in self.attracted:
            everywhere &= each.labelled(view)
            here = each.here(view)
            found &= here > 0
            # The count left in all domains: the total, less the removed pods of the own domain.
            gone = each.counts.take(view.of_nodes(each.topology.domains)) - here
            anywhere |= each.counts.sum() - np.where(each.labelled(view), gone, 0) > 0
        return everywhere & (found | (~anywhere if self.attracts_itself else False))


def _by_domain(tallies: Iterable[Tally]) -> dict[Domain, int]:
    return {domain: count for each in tallies for domain, count in each.by_domain().items()}


def _keep_away(
    tallies: Iterable[Tally], view: View, verdicts: Verdicts, rejection: Rejection
) -> None:
    for each in tallies:
        verdicts.refuse((each.here(view) > 0) & each.labelled(view), rejection)


def _attracted(asked: Asked) -> tuple[Tally, ...]:
    terms = asked.pod.affinity
    if not terms:
        return ()
    matching = np.ones(len(asked.columns.classes), np.bool_)
    for term in terms:
        matching &= _spoken_of(term, asked)
    keys = Counter(term.topology_key for term in terms)
    return _tallies({key: matching * count for key, count in keys.items()}, asked, CLASS)


def _averse(asked: Asked) -> tuple[Tally, ...]:
    weights: dict[str, Ints] = {}
    for term in asked.pod.anti_affinity:
        found = _spoken_of(term, asked).astype(np.int64)
        weights[term.topology_key] = weights.get(term.topology_key, 0) + found
    return _tallies(weights, asked, CLASS)


def _repelled(asked: Asked) -> tuple[Tally, ...]:
    pod, namespaces = asked.pod, asked.snapshot.namespaces
    weights = asked.columns.traits.repelling(pod.labels, lambda term: term.matches(pod, namespaces))
    return _tallies(weights, asked, TRAITS)


def _tallies(weights: dict[str, Ints], asked: Asked, channel: int) -> tuple[Tally, ...]:
    return tuple(
        tally(asked.everything, topology(asked.columns, key), each, channel)
        for key, each in weights.items()
    )


def _spoken_of(term: AffinityTerm, asked: Asked) -> Bools:
    namespaces = asked.snapshot.namespaces

    def speaks_of(pod: Pod) -> bool:
        return term.matches(pod, namespaces)

    return asked.columns.classes.lookup(term.selector, speaks_of)
