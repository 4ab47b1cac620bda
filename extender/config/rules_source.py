"""What the rules of decisions are built from, so that they can be built again without files."""

from __future__ import annotations

import msgspec

from extender.config.component_config import Config, DevicesConfig, filters_from_config
from extender.config.plugin_args import ManagedResource, PluginConfig
from extender.config.preemption_policy import PolicySource, build_policy, read_policy_source
from policies.kubernetes.releases import assumed_gates, release
from policies.preemption.policy import SchedulerRules


class RulesSource(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The text of a policy, and the fields of the configuration that change decisions."""

    policy: PolicySource
    upstream: str
    feature_gates: dict[str, bool]
    managed_resources: tuple[ManagedResource, ...]
    plugin_config: tuple[PluginConfig, ...]
    scheduler_names: tuple[str, ...]
    devices: DevicesConfig


def read_rules_source(config: Config) -> RulesSource:
    """Return the source of the rules of a configuration, with the text of its policy file.

    Raise ConfigError if the file cannot be read.
    """
    return RulesSource(
        read_policy_source(config.policy),
        config.upstream,
        config.feature_gates,
        config.managed_resources,
        config.plugin_config,
        config.scheduler_names,
        config.devices,
    )


def build_rules(source: RulesSource) -> SchedulerRules:
    """Return the rules of a source. Raise ConfigError and UnknownReleaseError.

    Gates that are not configured count as on if pods show that the API server has them on.
    """
    config = Config(
        managed_resources=source.managed_resources,
        plugin_config=source.plugin_config,
        devices=source.devices,
    )
    assumed = assumed_gates(source.upstream, source.feature_gates)
    settings = source.feature_gates | {gate.value: True for gate in assumed}
    policy = build_policy(source.policy)
    return SchedulerRules(
        release(source.upstream, settings),
        filters_from_config(config),
        policy.default,
        frozenset(source.scheduler_names),
        assumed,
        policy.rules,
    )
