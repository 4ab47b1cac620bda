"""kube-scheduler's own configuration, copied into ours, and the errors reported for it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from extender.config.component_config import Config, filters_from_config, load_config
from extender.config.strict_decoding import ConfigError
from policies.kubernetes.selectors import (
    NodeSelector,
    NodeSelectorTerm,
    Requirement,
    SpreadConstraint,
    field_requirement,
    node_requirement,
)
from policies.preemption.filtering import IN_TREE, FilterSettings, configured_filters

GPU, FPGA = "example.com/gpu", "example.com/fpga"


def loaded(tmp_path: Path, text: str) -> Config:
    path = tmp_path / "reprieve.yaml"
    path.write_text(text)
    return load_config(path)


def test_empty_arguments_change_nothing(tmp_path: Path) -> None:
    assert filters_from_config(loaded(tmp_path, "{}")) == IN_TREE


POOL_TERM = NodeSelectorTerm(
    (node_requirement("pool", "In", ["a"]),), (field_requirement("metadata.name", "In", ["n"]),)
)

CASES = {
    "a resource that kube-scheduler leaves to an extender": (
        f"managedResources: [{{name: {GPU}, ignoredByScheduler: true}}]",
        FilterSettings(ignored=frozenset([GPU])),
    ),
    "a resource that both of them count": (
        f"managedResources: [{{name: {GPU}}}]",
        FilterSettings(),
    ),
    "resources that NodeResourcesFit ignores": (
        f"""
pluginConfig:
- name: NodeResourcesFit
  args: {{ignoredResources: [{GPU}], ignoredResourceGroups: [a.b]}}
""",
        FilterSettings(ignored=frozenset([GPU]), ignored_groups=frozenset(["a.b"])),
    ),
    "an extender's resources replace NodeResourcesFit's list, and not its groups": (
        f"""
managedResources: [{{name: {FPGA}, ignoredByScheduler: true}}]
pluginConfig:
- name: NodeResourcesFit
  args: {{ignoredResources: [{GPU}], ignoredResourceGroups: [a.b]}}
""",
        FilterSettings(ignored=frozenset([FPGA]), ignored_groups=frozenset(["a.b"])),
    ),
    "node affinity for all pods": (
        """
pluginConfig:
- name: NodeAffinity
  args:
    apiVersion: kubescheduler.config.k8s.io/v1
    kind: NodeAffinityArgs
    addedAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
        - matchExpressions: [{key: pool, operator: In, values: [a]}]
          matchFields: [{key: metadata.name, operator: In, values: [n]}]
        - matchExpressions: [{key: gpu, operator: Exists}]
      preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1}]
""",
        FilterSettings(
            added_affinity=NodeSelector(
                (POOL_TERM, NodeSelectorTerm((Requirement("gpu", "Exists"),)))
            )
        ),
    ),
    "node affinity that only prefers": (
        """
pluginConfig:
- name: NodeAffinity
  args: {addedAffinity: {preferredDuringSchedulingIgnoredDuringExecution: []}}
""",
        FilterSettings(),
    ),
    "spreading by default, hard and soft": (
        """
pluginConfig:
- name: PodTopologySpread
  args:
    defaultingType: List
    defaultConstraints:
    - {maxSkew: 3, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}
    - {maxSkew: 2, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, minDomains: 3}
    - maxSkew: 1
      topologyKey: rack
      whenUnsatisfiable: DoNotSchedule
      nodeAffinityPolicy: Ignore
      nodeTaintsPolicy: Honor
      matchLabelKeys: [pod-template-hash]
""",
        FilterSettings(
            default_spread=(
                SpreadConstraint(2, "zone", None, min_domains=3),
                SpreadConstraint(1, "rack", None, honors_affinity=False, honors_taints=True),
            )
        ),
    ),
    "spreading as the system defaults it": (
        "pluginConfig: [{name: PodTopologySpread, args: {defaultingType: System}}]",
        FilterSettings(),
    ),
    "plugins that do not filter, as they stand": (
        """
pluginConfig:
- name: DefaultPreemption
  args: {minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 1}
- name: NodeResourcesFit
  args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
- name: InterPodAffinity
  args: {hardPodAffinityWeight: 5}
- name: NodeResourcesBalancedAllocation
- name: VolumeBinding
- name: DynamicResources
""",
        FilterSettings(),
    ),
}


@pytest.mark.parametrize(("text", "settings"), CASES.values(), ids=CASES)
def test_the_configuration_sets_the_plugins_arguments(
    tmp_path: Path, text: str, settings: FilterSettings
) -> None:
    assert filters_from_config(loaded(tmp_path, text)) == configured_filters(settings)


def spread(*constraints: str, kind: str = "List") -> str:
    listed = ", ".join(f"{{{each}}}" for each in constraints)
    args = f"{{defaultingType: {kind}, defaultConstraints: [{listed}]}}"
    return f"pluginConfig: [{{name: PodTopologySpread, args: {args}}}]"


HARD = "maxSkew: 1, topologyKey: z, whenUnsatisfiable: DoNotSchedule"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("managedResources: [{ignoredByScheduler: true}]", "managedResources[0]: Object missing"),
        (
            f"managedResources: [{{name: {GPU}, ignored: true}}]",
            "managedResources[0]: Object contains unknown field ignored",
        ),
        ("pluginConfig: [{name: NodeAffection}]", "pluginConfig[0].name: Invalid value"),
        (
            "pluginConfig: [{name: NodeAffinity}, {name: NodeAffinity}]",
            "pluginConfig[1]: repeats a plugin; expected each only once",
        ),
        (
            "pluginConfig: [{name: NodeAffinity, args: {addedAfinity: {}}}]",
            "pluginConfig[0].args: Object contains unknown field addedAfinity",
        ),
        (
            """
pluginConfig:
- name: NodeAffinity
  args:
    addedAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Near}]}]
""",
            (
                "pluginConfig[0].args.addedAffinity.requiredDuringSchedulingIgnoredDuringExecution"
                ": 'Near' is not a valid"
            ),
        ),
        (
            "pluginConfig: [{name: NodeResourcesFit, args: {ignoredResourceGroups: [a/b]}}]",
            "pluginConfig[0].args.ignoredResourceGroups[0]: 'a/b': expected a group without",
        ),
        (
            spread("topologyKey: zone"),
            "pluginConfig[0].args.defaultConstraints[0]: Object missing required field maxSkew",
        ),
        (
            spread(HARD.replace("1", "0")),
            "pluginConfig[0].args.defaultConstraints[0].maxSkew: Expected int >= 1",
        ),
        (
            spread(HARD.replace("DoNotSchedule", "Never")),
            "pluginConfig[0].args.defaultConstraints[0].whenUnsatisfiable: Invalid enum value",
        ),
        (
            spread(f"{HARD}, labelSelector: {{}}"),
            "pluginConfig[0].args.defaultConstraints[0]: Object contains unknown field labelSel",
        ),
        (
            spread(HARD, HARD.replace("1", "2")),
            "pluginConfig[0].args.defaultConstraints[1]: repeats z, DoNotSchedule",
        ),
        (
            spread(HARD, kind="System"),
            "pluginConfig[0].args.defaultConstraints: expected none unless defaultingType is List",
        ),
    ],
)
def test_a_mistake_names_file_field_and_what_was_expected(
    tmp_path: Path, text: str, problem: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        loaded(tmp_path, text)
    place = re.escape(str(tmp_path / "reprieve.yaml")) + r":\d+: "
    assert re.match(place + re.escape(problem), str(raised.value))
    assert "\n" not in str(raised.value)


def test_devices_of_victims_can_be_free(tmp_path: Path) -> None:
    found = filters_from_config(loaded(tmp_path, "devices: {freeVictims: true}"))
    assert found == configured_filters(FilterSettings(frees_victims=True))
