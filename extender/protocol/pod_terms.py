"""The pod of a call, with a bound on its terms.

Each node, and each pod on it, is compared with each of these terms, so a decision about a pod with
thousands of them takes long even for a single node. Pods in use have a few.
"""

from __future__ import annotations

from typing import Final

from extender.kube.decoders.pods import NO_KEYS, decode_pod
from extender.protocol.extender_v1 import ExtenderDecodeError
from policies.kubernetes.releases import Release
from policies.kubernetes.snapshot import Pod

MAX_TERMS: Final = 100
"""The maximum number of terms of each kind."""


def decode_pod_of_call(raw: bytes, release: Release, annotations: frozenset[str] = NO_KEYS) -> Pod:
    """Decode the pod of a call; it keeps ``annotations``.

    Raise ObjectError for an invalid pod, and ExtenderDecodeError for one with too many terms.
    """
    pod = decode_pod(raw, release, annotations)
    for terms, what in (
        (pod.affinity, "required terms of podAffinity"),
        (pod.anti_affinity, "required terms of podAntiAffinity"),
        (pod.spread, "topologySpreadConstraints"),
    ):
        if len(terms) > MAX_TERMS:
            raise ExtenderDecodeError(f"Pod: {len(terms)} {what}; expected at most {MAX_TERMS}")
    return pod
