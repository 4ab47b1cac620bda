"""The rules of decisions are built again from their source, without the files."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from extender.config.component_config import Config, DevicesConfig
from extender.config.plugin_args import (
    ManagedResource,
    PodTopologySpreadArgs,
    PodTopologySpreadConfig,
)
from extender.config.preemption_policy import PolicySource
from extender.config.rules_source import RulesSource, build_rules, read_rules_source
from extender.config.strict_decoding import ConfigError
from policies.kubernetes.feature_gates import FeatureGate
from policies.kubernetes.releases import UnknownReleaseError
from policies.preemption.filtering import FilterSettings, configured_filters
from policies.preemption.policy import DEFAULT_RULES

HEAD = "apiVersion: reprieve.dev/v1alpha1\nkind: PreemptionPolicy\nmetadata: {name: spare-jobs}\n"
POLICY = f"""{HEAD}rules:
- name: web
  preemptors: {{labels: {{matchLabels: {{app: web}}}}}}
- name: all
  guards: {{priorityGap: 7}}
"""


def source_of(tmp_path: Path, text: str, **fields: object) -> RulesSource:
    """Return the source of a configuration with a policy file, which is then deleted."""
    path = tmp_path / "policy.yaml"
    path.write_text(text)
    config = msgspec.structs.replace(Config(policy=str(path)), **fields)
    source = read_rules_source(config)
    path.unlink()
    return source


def test_a_policy_is_built_from_the_text_of_its_file(tmp_path: Path) -> None:
    rules = build_rules(source_of(tmp_path, POLICY))
    assert (rules.policy.name, rules.policy.priority_gap) == ("spare-jobs", 7)
    assert [each.policy.name for each in rules.policy_rules] == ["spare-jobs/web"]


def test_a_source_has_all_of_the_configuration_that_changes_decisions(tmp_path: Path) -> None:
    source = source_of(
        tmp_path,
        POLICY,
        upstream="1.36",
        feature_gates={"GenericWorkload": True},
        managed_resources=(ManagedResource("example.com/license", ignored_by_scheduler=True),),
        plugin_config=(PodTopologySpreadConfig(PodTopologySpreadArgs(defaulting_type="List")),),
        scheduler_names=("batch",),
        devices=DevicesConfig(free_victims=True),
    )
    again = msgspec.json.decode(msgspec.json.encode(source), type=RulesSource)
    assert again == source
    rules = build_rules(again)
    assert rules.release.name == "1.36"
    assert FeatureGate.GENERIC_WORKLOAD in rules.release.gates
    assert rules.scheduler_names == {"batch"}
    settings = FilterSettings(frozenset({"example.com/license"}), frees_victims=True)
    assert rules.filters == configured_filters(settings)


def test_a_built_in_policy_has_no_text() -> None:
    source = read_rules_source(Config())
    assert source.policy == PolicySource("kube-scheduler")
    assert build_rules(source).policy is DEFAULT_RULES.policy


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (POLICY.replace("priorityGap: 7", "priorityGap: 0"), ":8: rules[1].guards.priorityGap: "),
        (
            POLICY.replace("priorityGap: 7", "plugins: [spare-it]"),
            ":8: rules[1].guards.plugins[0]: unknown plugin 'spare-it'; expected ",
        ),
        ("{", ": not YAML: "),
    ],
    ids=["invalid field", "plugin that is not installed", "not YAML"],
)
def test_an_error_has_the_file_and_the_line(tmp_path: Path, text: str, error: str) -> None:
    source = source_of(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        build_rules(source)
    (line,) = caught.value.errors
    assert line.startswith(f"{tmp_path / 'policy.yaml'}{error}")


def test_a_policy_without_text_and_an_unknown_release_are_errors() -> None:
    source = read_rules_source(Config())
    for changed, kind, text in (
        (
            msgspec.structs.replace(source, policy=PolicySource("other")),
            ConfigError,
            "policy 'other': no such file or built-in policy (kube-scheduler)",
        ),
        (msgspec.structs.replace(source, upstream="0.9"), UnknownReleaseError, "0.9"),
    ):
        with pytest.raises(kind) as caught:
            build_rules(changed)
        assert text in str(caught.value)
