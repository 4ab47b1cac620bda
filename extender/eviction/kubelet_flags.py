"""The kubelet's eviction flags on the command line, in the syntax of the kubelet's own flags.

    --eviction-hard memory.available<500Mi,nodefs.available<10%
    --grace-period memory.available=1m30s

A flag replaces the whole map of the same name in the configuration file.

Source: LangleSeparatedMapStringString and MapStringString in k8s.io/component-base/cli/flag.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from extender.config.strict_decoding import ConfigError
from extender.kube.decoders.kubelet.config import KubeletConfig, decode_kubelet_config
from extender.kube.decoders.manifests import ManifestError, read_documents
from policies.eviction.config import EvictionConfig
from policies.eviction.filesystems import Layout
from policies.eviction.kubelet_releases import EvictionRelease
from policies.eviction.thresholds import ThresholdError

_FLAGS: Final[Mapping[str, str]] = {
    "evictionHard": "--eviction-hard",
    "evictionSoft": "--eviction-soft",
    "evictionSoftGracePeriod": "--grace-period",
    "evictionMinimumReclaim": "--minimum-reclaim",
}
_BOUNDS: Final = ("evictionHard", "evictionSoft")


@dataclass(frozen=True, slots=True)
class KubeletFlags:
    """The flags, each possibly given several times; None if not set."""

    config: str | None = None
    eviction_hard: Sequence[str] | None = None
    eviction_soft: Sequence[str] | None = None
    grace_period: Sequence[str] | None = None
    minimum_reclaim: Sequence[str] | None = None

    def read(self) -> KubeletConfig:
        """Read the configuration file, and apply the flags. Raise ConfigError or ManifestError."""
        base = KubeletConfig() if self.config is None else _read_config(self.config)
        maps = {
            "eviction_hard": _pairs("evictionHard", self.eviction_hard, "<"),
            "eviction_soft": _pairs("evictionSoft", self.eviction_soft, "<"),
            "eviction_soft_grace_period": _pairs("evictionSoftGracePeriod", self.grace_period, "="),
            "eviction_minimum_reclaim": _pairs("evictionMinimumReclaim", self.minimum_reclaim, "="),
        }
        return msgspec.structs.replace(
            base, **{name: pairs for name, pairs in maps.items() if pairs is not None}
        )

    def eviction_config(self, layout: Layout, release: EvictionRelease) -> EvictionConfig:
        """Return the eviction configuration. Raise ConfigError, or ManifestError for the file."""
        try:
            return self.read().configuration(layout, release)
        except ThresholdError as error:
            raise ConfigError(f"{self._location(error)}: {error}") from None

    def _location(self, error: ThresholdError) -> str:
        field = error.field
        flags = {
            "evictionHard": self.eviction_hard,
            "evictionSoft": self.eviction_soft,
            "evictionSoftGracePeriod": self.grace_period,
            "evictionMinimumReclaim": self.minimum_reclaim,
        }
        if self.config is None or flags.get(field) is not None:
            middle = "<" if field in _BOUNDS else "="
            return " ".join((_FLAGS[field], *([middle.join(error.entry)] if error.entry else ())))
        return f"{self.config}: {field}{f'[{error.entry[0]}]' if error.entry else ''}"


def _read_config(path: str) -> KubeletConfig:
    documents = read_documents(path)
    if len(documents) != 1:
        raise ManifestError(f"{path}: holds {len(documents)} documents; expected exactly one")
    return decode_kubelet_config(documents[0])


def _pairs(field: str, texts: Iterable[str] | None, separator: str) -> dict[str, str] | None:
    """Parse ``key<value,…``; the last value of a repeated key counts."""
    if texts is None:
        return None
    found: dict[str, str] = {}
    for pair in (pair for text in texts for pair in text.split(",") if pair):
        key, middle, value = pair.partition(separator)
        if not middle:
            raise ConfigError(
                f"{_FLAGS[field]}: malformed pair, expect string{separator}string: {pair}"
            )
        found[key.strip()] = value.strip()
    return found
