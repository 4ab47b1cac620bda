"""Guardrails: the last check of a preempt answer before it is sent.

kube-scheduler deletes any pods that an extender names on a node it knows; it was observed to delete
a pod of the preemptor's own priority. And one UID that it does not find makes it discard the whole
answer. So every entry is validated, whichever code computed it:

- the node is known, and every victim is on it now;
- every victim has strictly lower priority than the preemptor, and no guard of the policy protects
  it;
- victims are ordered most important first, since kube-scheduler takes the first one's priority for
  the highest;
- there is at least one victim, unless the release accepts nodes without victims.

An invalid entry is left out, and a note has the reason.
"""

from __future__ import annotations

from collections.abc import Sequence

from policies.decision import VictimSet
from policies.model import Pod, Snapshot
from policies.policy import DEFAULT_VICTIM_ORDER, Policy
from policies.upstream import Release


def guardrail_violation(
    node: str,
    victims: VictimSet,
    preemptor: Pod,
    snapshot: Snapshot,
    release: Release,
    policy: Policy,
) -> str | None:
    """Return why an entry violates a guardrail, or None if it is valid."""
    state = snapshot.nodes.get(node)
    if state is None:
        return f"node {node} is not known"
    if state.unreadable:
        return f"node {node} holds a pod that could not be read: {', '.join(state.unreadable)}"
    if not victims.pods and not release.victimless_candidates:
        return f"node {node} has no victims, which release {release.name} refuses"
    present = {pod.uid for pod in state.pods}
    for pod in victims.pods:
        if pod.uid not in present:
            return f"victim {pod.key} ({pod.uid}) is not on node {node}"
        if pod.priority >= preemptor.priority:
            return f"victim {pod.key} has priority {pod.priority}, not below {preemptor.priority}"
        guard = policy.protection_of(pod)
        if guard is not None:
            return f"victim {pod.key} is protected by {guard.name}"
    if not _most_important_first(victims.pods):
        return f"the victims on node {node} are not ordered by importance"
    return None


def _most_important_first(pods: Sequence[Pod]) -> bool:
    return list(pods) == DEFAULT_VICTIM_ORDER.sort(pods)
