"""The cases of upstream's tables about WorkloadSpreads, decoded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from extender.explain.workloadspread import SpreadExplanation, explain_spread
from extender.explain.workloadspread_files import WorkloadSpreadFiles
from extender.kube.workloadspread.spread_pods import decode_spread_pod
from extender.kube.workloadspread.spreads import StoredWorkloadSpread, decode_workloadspread
from policies.workloadspread.model import SpreadPod
from policies.workloadspread.quirks import Quirks
from policies.workloadspread.reconcile import SpreadRules
from policies.workloadspread.spread_lookup import OwnerLookup
from policies.workloadspread.workload_versions import DEFAULT_VERSIONED_KINDS, versioned_kinds
from tests.builders import encoded
from tests.builders.workloadspread import files, moment

CASES: list[dict[str, Any]] = msgspec.json.decode(
    Path(__file__).with_name("workloadspread.json").read_bytes()
)["cases"]

PARTS = frozenset(
    (
        "conversion",
        "event_enqueue",
        "event_mapping",
        "initial_status",
        "nested_field",
        "ordinal",
        "owner_kind",
        "patch",
        "pod_selected",
        "pod_version",
        "reference_chain",
        "reference_equal",
        "replicas_path",
        "validate_conflict",
        "validate_create",
        "validate_handler",
        "validate_patch",
        "validate_update",
        "workload_replicas",
        "workload_version",
    )
)
"""The tables of single rules."""


@dataclass(frozen=True)
class Case:
    """A case of the tables, and the quirks under which it runs."""

    data: Mapping[str, Any]
    quirks: Quirks

    @property
    def expect(self) -> Mapping[str, Any]:
        expect: Mapping[str, Any] = self.data["expect"]
        return expect

    @property
    def input(self) -> Mapping[str, Any]:
        value: Mapping[str, Any] = self.data["input"]
        return value

    @cached_property
    def kinds(self) -> frozenset[str]:
        kinds = (self.data.get("config") or {}).get("versionedStatusKinds")
        return DEFAULT_VERSIONED_KINDS if kinds is None else versioned_kinds(kinds)

    @cached_property
    def files(self) -> WorkloadSpreadFiles:
        ones = (self.data.get("workloadspread"), self.data.get("workload"))
        many = (self.data.get(name) or () for name in ("pods", "nodes", "extra", "existing"))
        documents = [*ones, *(each for several in many for each in several)]
        return files(*(each for each in documents if each and each["metadata"].get("name")))

    @cached_property
    def written(self) -> StoredWorkloadSpread:
        return decode_workloadspread(encoded(self.data["workloadspread"]))

    @cached_property
    def pods(self) -> list[SpreadPod]:
        return [decode_spread_pod(encoded(each)) for each in self.data["pods"]]

    @property
    def now_ns(self) -> int:
        return moment(self.data["now"])

    @property
    def rules(self) -> SpreadRules:
        return SpreadRules(self.kinds, self.quirks)

    @cached_property
    def explained(self) -> SpreadExplanation:
        return explain_spread(self.files, self.written.spread.key, self.now_ns, self.rules)

    def owners(self, pod: SpreadPod) -> OwnerLookup:
        return self.files.owners(pod)


def of(data: Mapping[str, Any]) -> str:
    """Return the name of a case."""
    return f"{data['table']}: {data['name']}"
