"""Tunings of backtests whose results are a function of the policy, so that the best is known."""

from __future__ import annotations

import pytest

from extender.config.policy_file import PolicyFile
from extender.config.strict_decoding import ConfigError
from fakeapi.backtest.tuning.search import BATCH, StoppedError
from fakeapi.backtest.tuning.tuning import TuningResult, tune
from tests.fakeapi.backtest.tuning.tuned_policies import BUILT_IN, FakeBacktest, plan

TRAINING, HELD_OUT = range(2), range(2, 3)


def better_with(policy: PolicyFile, criterion: str, place: int) -> int:
    """Return 10 less the nearer a criterion is to a place of the order of candidates."""
    order = policy.rules[0].candidates
    return 10 * abs(order.index(criterion) - place) if criterion in order else 40


def known_optimum(policy: PolicyFile, seed: int, segment: int) -> tuple[int, int]:
    """Disruptions are fewest with two criteria in their places, and "earliest start" first."""
    victims = policy.rules[0].victims
    assert isinstance(victims, tuple)
    far = better_with(policy, "least run time", 1) + better_with(policy, "fewest gangs", 2)
    return 100 + seed + segment + far + 20 * (victims[0] != "earliest start"), 50


def overfitted(policy: PolicyFile, seed: int, segment: int) -> tuple[int, int]:
    """What is better in training is worse on the held-out segment."""
    disruptions, finished = known_optimum(policy, seed, segment)
    return (disruptions if segment in TRAINING else 300 - disruptions), finished


def trade_off(policy: PolicyFile, seed: int, segment: int) -> tuple[int, int]:
    """Each criterion avoids disruptions and costs finished pods."""
    criteria = len(policy.rules[0].candidates)
    return 100 - 10 * criteria + seed, 1000 - criteria**2 - segment


def indifferent(policy: PolicyFile, seed: int, segment: int) -> tuple[int, int]:
    assert policy.rules
    return seed, segment


def test_the_optimum_is_found_and_recommended() -> None:
    found = tune(plan("disruptions", trials=160), FakeBacktest(known_optimum))
    rule = found.chosen.file.rules[0]
    assert rule.candidates[:3] == ("fewest PDB violations", "least run time", "fewest gangs")
    assert isinstance(rule.victims, tuple)
    assert rule.victims[0] == "earliest start"
    assert found.front == (found.chosen,)
    assert found.recommended == "kube-scheduler-tuned"
    assert not found.is_interrupted
    assert found.policies <= found.trials == 160


def test_the_base_policy_is_the_first_trial_and_is_simulated_as_it_is() -> None:
    backtest = FakeBacktest(known_optimum)
    found = tune(plan("disruptions", base="two-rules"), backtest)
    assert backtest.simulated[0] == ("trial-0", TRAINING)
    assert found.base.trial == 0
    assert found.base.file == plan("disruptions", base="two-rules").file


def test_a_policy_is_simulated_once_and_held_out_segments_only_after_the_search() -> None:
    backtest = FakeBacktest(known_optimum)
    found = tune(plan("disruptions", trials=80), backtest)
    names = [name for name, segments in backtest.simulated if segments == TRAINING]
    assert len(names) == len({*names}) == found.policies
    assert backtest.simulated[len(names) :] == [
        (BUILT_IN, HELD_OUT),
        ("kube-scheduler-tuned", HELD_OUT),
    ]


def test_what_is_not_better_on_held_out_segments_is_not_recommended() -> None:
    found = tune(plan("disruptions", trials=80), FakeBacktest(overfitted))
    assert found.recommended == BUILT_IN
    assert found.validation is not None
    (objective,) = found.validation.objectives
    assert (objective.training.change, objective.held_out.change) == ("better", "worse")
    assert objective.gap is not None
    assert objective.gap.mean > 0


def test_of_two_objectives_the_front_has_the_trade_offs() -> None:
    found = tune(
        plan("disruptions", maximize=["finished-pods"], trials=80), FakeBacktest(trade_off)
    )
    values = [
        (each.values["disruptions"].mean, each.values["finished-pods"].mean) for each in found.front
    ]
    assert values == sorted(values)
    assert len(values) > 2
    assert found.chosen in found.front


def test_if_no_policy_is_better_the_base_policy_is_chosen_and_nothing_is_validated() -> None:
    backtest = FakeBacktest(indifferent)
    found = tune(plan("disruptions", trials=20), backtest)
    assert found.chosen == found.base
    assert (found.validation, found.recommended) == (None, BUILT_IN)
    assert not found.is_interrupted
    assert {segments for _, segments in backtest.simulated} == {TRAINING}


def test_equal_seeds_find_the_same_policies() -> None:
    def course(seed: int) -> tuple[TuningResult, list[tuple[str, range]]]:
        backtest = FakeBacktest(known_optimum)
        return tune(plan("disruptions", seed=seed), backtest), backtest.simulated

    assert course(7) == course(7)
    assert course(7) != course(8)


@pytest.mark.parametrize(("after", "trials"), [(1, BATCH), (2, 2 * BATCH)])
def test_a_stopped_search_has_the_best_so_far(after: int, trials: int) -> None:
    found = tune(plan("disruptions"), FakeBacktest(known_optimum, stops_after=after))
    assert (found.trials, found.planned, found.is_interrupted) == (trials, 40, True)
    assert (found.validation, found.recommended) == (None, BUILT_IN)
    assert found.chosen.values["disruptions"].mean <= found.base.values["disruptions"].mean


def test_a_stopped_validation_is_missing() -> None:
    backtest = FakeBacktest(known_optimum, stops_after=40 // BATCH)
    found = tune(plan("disruptions"), backtest)
    assert (found.trials, found.validation, found.is_interrupted) == (40, None, True)


def test_a_search_that_is_stopped_at_once_has_no_result() -> None:
    with pytest.raises(StoppedError):
        tune(plan("disruptions"), FakeBacktest(known_optimum, stops_after=0))


def test_a_measure_that_the_base_policy_does_not_have_is_an_error() -> None:
    with pytest.raises(ConfigError) as error:
        tune(plan("queueing-p50"), FakeBacktest(known_optimum))
    (line,) = error.value.errors
    assert line == (
        "--minimize queueing-p50: expected a measure that the base policy has in the training "
        "segments with each seed"
    )
