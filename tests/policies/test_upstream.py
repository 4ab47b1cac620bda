"""The table of releases."""

from __future__ import annotations

from dataclasses import fields

import pytest

from policies.upstream import NEWEST, RELEASES, Release, UnknownReleaseError, release


@pytest.mark.parametrize("version", ["1.34", "v1.34", "1.34.2", "v1.34.0-rc.1"])
def test_a_release_is_found_by_its_minor_version(version: str) -> None:
    assert release(version) is RELEASES["1.34"]


@pytest.mark.parametrize("version", ["", "1", "1.29", "1.99", "2.30", "newest", "v"])
def test_an_unknown_release_is_answered_with_the_known_ones(version: str) -> None:
    with pytest.raises(UnknownReleaseError) as caught:
        release(version)
    assert repr(version) in str(caught.value)
    assert all(name in str(caught.value) for name in RELEASES)


def test_the_newest_release_is_the_last_of_the_table() -> None:
    assert list(RELEASES) == [f"1.{minor}" for minor in range(30, 39)]
    assert RELEASES["1.38"] is NEWEST


CHANGES = {
    "status_resources": ["1.33", "1.37"],
    "pod_level_requests": ["1.34"],
    "pod_level_status": ["1.36"],
    "sidecar_host_ports": ["1.33"],
    "taint_reason": ["1.34"],
    "oversized_is_unresolvable": ["1.34"],
    "names_unexamined_nodes": ["1.32"],
    "mentions_claims": ["1.34", "1.37"],
    "announces_placement": ["1.37"],
    "budget_after_violation": ["1.37"],
    "empty_selector": ["1.38"],
    "victimless_candidates": ["1.38"],
    "claim_in_use_is_of_the_node": ["1.34"],
    "volume_affinity_is_a_conflict": ["1.33"],
    "node_lists_volume_limits": ["1.32"],
    "attachments_count": ["1.32"],
    "driver_may_be_required": ["1.37"],
    "portworx": ["1.31", "1.36"],
    "device_claims": ["1.34"],
    "binding_conditions": ["1.36"],
    "claim_owner_is_capitalised": ["1.36"],
}


@pytest.mark.parametrize("rule", [each.name for each in fields(Release) if each.name != "name"])
def test_each_rule_changed_in_the_releases_in_which_upstream_changed_it(rule: str) -> None:
    table = list(RELEASES.values())
    changed = [
        table[index].name
        for index in range(1, len(table))
        if getattr(table[index], rule) != getattr(table[index - 1], rule)
    ]
    assert changed == CHANGES[rule]
