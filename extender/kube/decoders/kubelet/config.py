"""KubeletConfiguration, as far as eviction reads it: from its file or from /configz.

Both contain a KubeletConfiguration; /configz wraps it in ``{"kubeletconfig": …}``. Missing fields
have the kubelet's own defaults.

Source: k8s.io/kubelet/config/v1beta1 and its defaults in pkg/kubelet/apis/config/v1beta1.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from extender.kube.decoders.core_v1_types import Int32
from extender.kube.decoders.manifests import Document, ManifestError, decode_document
from policies.eviction.config import DEFAULT_HARD, DEFAULT_TRANSITION_NS, EvictionConfig
from policies.eviction.filesystems import Layout
from policies.eviction.kubelet_releases import EvictionRelease
from policies.eviction.thresholds import ThresholdError, ThresholdFlags, parse_thresholds
from policies.kubernetes.duration import parse_duration

_KIND = "KubeletConfiguration"
_PODS = "pods"


class KubeletConfig(Struct, rename="camel", frozen=True):
    """kubelet.config.k8s.io/v1beta1 KubeletConfiguration."""

    kind: str = _KIND
    eviction_hard: dict[str, str] | None = None
    eviction_soft: dict[str, str] | None = None
    eviction_soft_grace_period: dict[str, str] | None = None
    eviction_minimum_reclaim: dict[str, str] | None = None
    eviction_pressure_transition_period: str | None = None
    eviction_max_pod_grace_period: Int32 | None = None
    enforce_node_allocatable: list[str] | None = None
    local_storage_capacity_isolation: bool | None = None
    merge_default_eviction_settings: bool | None = None
    feature_gates: dict[str, bool] | None = None

    def configuration(self, layout: Layout, release: EvictionRelease) -> EvictionConfig:
        """Return the eviction configuration of a kubelet of ``release`` with this disk layout.

        Raise ThresholdError, which names the field, also for an invalid transition period.
        """
        texts = ThresholdFlags(
            self._hard(release),
            self.eviction_soft or {},
            self.eviction_soft_grace_period or {},
            self.eviction_minimum_reclaim or {},
        )
        enforced = self.enforce_node_allocatable
        isolates = self.local_storage_capacity_isolation
        return EvictionConfig(
            tuple(parse_thresholds(texts, (_PODS,) if enforced is None else enforced)),
            self._transition_ns() or DEFAULT_TRANSITION_NS,
            self.eviction_max_pod_grace_period or 0,
            True if isolates is None else isolates,
            layout,
            release.with_feature_gates(self.feature_gates or {}),
        )

    def _transition_ns(self) -> int:
        period = self.eviction_pressure_transition_period
        try:
            return parse_duration(period) if period else 0
        except ValueError as error:
            raise ThresholdError(str(error), "evictionPressureTransitionPeriod") from None

    def _hard(self, release: EvictionRelease) -> Mapping[str, str]:
        if self.eviction_hard is None:
            return DEFAULT_HARD
        if self.merge_default_eviction_settings and release.merges_defaults:
            missing = {k: v for k, v in DEFAULT_HARD.items() if k not in self.eviction_hard}
            return {**self.eviction_hard, **missing}
        return self.eviction_hard


class _Configz(Struct):
    kubeletconfig: KubeletConfig | None = None


_configz = msgspec.json.Decoder(_Configz)
_configs = msgspec.json.Decoder(KubeletConfig)


def decode_kubelet_config(document: Document) -> KubeletConfig:
    """Decode a KubeletConfiguration. Raise ManifestError."""
    wrapped = decode_document(_configz, document).kubeletconfig
    config = decode_document(_configs, document) if wrapped is None else wrapped
    if config.kind != _KIND:
        raise ManifestError(f"{document.source}: kind: expected {_KIND}, got {config.kind}")
    return config
