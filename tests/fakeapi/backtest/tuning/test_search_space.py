"""The search space: only valid policies, of which the base is one, and none changes a guard."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from extender.config.policy_file import CheapestVictims, PolicyFile, PolicyMetadata
from extender.config.preemption_policy import PolicySource, decode_policy
from fakeapi.backtest.tuning.search_space import (
    END,
    STEPS,
    BaseParameters,
    policy_text,
    vary_policy,
)
from tests.fakeapi.backtest.tuning.tuned_policies import BUILT_IN, HEAD, SOURCES, read


class Given:
    """Parameters of which some are given, and the others are those of the base policy."""

    def __init__(self, **values: str | int) -> None:
        self._values = {name.replace("__", "."): value for name, value in values.items()}

    def choose(self, name: str, options: Sequence[str], base: str) -> str:
        value = self._values.get(name, base)
        assert value in options
        return str(value)

    def scale(self, name: str) -> int:
        return int(self._values.get(name, 0))


class Drawn:
    """Parameters that hypothesis draws."""

    def __init__(self, data: st.DataObject) -> None:
        self._data = data

    def choose(self, name: str, options: Sequence[str], base: str) -> str:
        assert base in options
        return self._data.draw(st.sampled_from(options), label=name)

    def scale(self, name: str) -> int:
        return self._data.draw(st.integers(-STEPS, STEPS), label=name)


def varied(base: str, **values: str | int) -> PolicyFile:
    return vary_policy(read(base), Given(**values))


@pytest.mark.parametrize("base", SOURCES)
@given(data=st.data())
def test_every_policy_is_a_valid_file_with_the_guards_of_the_base(
    base: str, data: st.DataObject
) -> None:
    file, found = read(base), vary_policy(read(base), Drawn(data))
    assert decode_policy(PolicySource("tuned.yaml", policy_text(found))) == found
    for rule, before in zip(found.rules, file.rules, strict=True):
        assert (rule.guards, rule.preemptors, rule.cost) == (
            before.guards,
            before.preemptors,
            before.cost,
        )
        kept = replace(rule, victims=before.victims, candidates=before.candidates)
        assert replace(kept, lost_work=before.lost_work) == before
    assert (found.metadata.name == file.metadata.name) == (found == file)


@pytest.mark.parametrize("base", SOURCES)
def test_the_parameters_of_the_base_policy_are_the_base_policy(base: str) -> None:
    parameters = BaseParameters()
    assert vary_policy(read(base), parameters) is not None
    assert vary_policy(read(base), parameters) == read(base)
    assert all(value == 0 or isinstance(value, str) for value in parameters.values.values())


def test_the_name_of_a_tuned_policy_is_valid_even_if_the_base_has_the_longest() -> None:
    name = "a." * 126 + "a"
    assert len(name) == 253
    long = replace(read(BUILT_IN), metadata=PolicyMetadata(name))
    found = vary_policy(long, Given(rules__0__victims__0="earliest start"))
    assert decode_policy(PolicySource("tuned.yaml", policy_text(found))) == found


@pytest.mark.parametrize(
    ("values", "order"),
    [
        ({}, "fewest PDB violations, least lost work, most restarts"),
        (
            {"rules__0__candidates__1": "fewest gangs"},
            "fewest PDB violations, fewest gangs, most restarts",
        ),
        ({"rules__0__candidates__1": END}, "fewest PDB violations"),
        ({"rules__0__candidates__2": "least lost work"}, "fewest PDB violations, least lost work"),
        (
            {"rules__0__candidates__3": "fewest victims"},
            "fewest PDB violations, least lost work, most restarts, fewest victims",
        ),
    ],
)
def test_orders_of_candidates(values: dict[str, str], order: str) -> None:
    assert ", ".join(varied("two-rules", **values).rules[0].candidates) == order


def options_of(base: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}

    class Recorded(BaseParameters):
        def choose(self, name: str, options: Sequence[str], base: str) -> str:
            found[name] = [*options]
            return super().choose(name, options, base)

        def scale(self, name: str) -> int:
            found[name] = []
            return super().scale(name)

    vary_policy(read(base), Recorded())
    return found


def test_fewest_pdb_violations_stays_first_only_where_it_is() -> None:
    assert "rules.0.candidates.0" not in options_of("two-rules")
    assert "rules.0.candidates.0" in options_of("cheapest")


def test_criteria_that_are_slow_or_constant_in_traces_are_tried_only_if_the_base_has_them() -> None:
    assert not {"most restarts", "lowest cost", "least cascade"} & {
        *options_of(BUILT_IN)["rules.0.candidates.1"]
    }
    assert "most restarts" in options_of("two-rules")["rules.0.candidates.1"]
    assert "least cascade" in options_of("cheapest")["rules.0.candidates.1"]
    assert "lowest cost" not in options_of("cheapest")["rules.0.victims.by"]


def weights(base: str) -> list[str]:
    return [name for name in options_of(base) if "lostWork" in name]


def test_weights_are_tuned_where_they_order_and_limit_nothing() -> None:
    assert weights("two-rules") == []  # the first rule limits by them, the second has no such order
    assert weights("cheapest") == []  # they limit
    ordered = {"rules__1__candidates__1": "least lost work of gangs"}
    found = varied("two-rules", **ordered, rules__1__lostWork__cpu=2).rules[1].lost_work
    assert found.weights == {"nvidia.com/gpu": 1, "cpu": 0.08, "memory": 0.001}
    least = varied("two-rules", **ordered, rules__1__lostWork__cpu=-5).rules[1].lost_work
    assert least.weights["cpu"] == 0.001
    assert found.checkpoint == "a.b/saved"


def test_the_criterion_of_the_cheapest_victims_is_tuned() -> None:
    found = varied("cheapest", rules__0__victims__by="fewest gangs").rules[0].victims
    assert found == CheapestVictims("cheapest", "fewest gangs")


def test_the_text_of_a_policy_leaves_defaults_out() -> None:
    text = policy_text(varied(BUILT_IN, rules__0__candidates__1=END))
    assert text == (
        HEAD.replace("{name: spare}", "\n  name: kube-scheduler-tuned").replace(": \n", ":\n")
        + "rules:\n- name: default\n  victims:\n  - highest priority\n  - earliest start\n"
        "  candidates:\n  - fewest PDB violations\n"
    )
