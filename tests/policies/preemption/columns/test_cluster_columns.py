"""Differences between two lists of pods."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.preemption.columns.cluster_columns import diff_pods

orders = st.lists(st.sampled_from("abcdefgh"), unique=True)


@given(orders, orders)
def test_the_difference_leads_from_one_state_to_the_other(then: list[str], now: list[str]) -> None:
    gone, come = diff_pods(then, now)
    assert set(gone) <= set(then)
    assert set(come) <= set(now)
    assert sorted([each for each in then if each not in set(gone)] + list(come)) == sorted(now)


@pytest.mark.parametrize(
    ("then", "now", "gone", "come"),
    [
        ("abc", "abc", "", ""),
        ("abc", "abcd", "", "d"),
        ("abc", "bc", "a", ""),
        ("abc", "ab", "c", ""),
        ("abc", "acd", "b", "d"),
        ("abc", "adc", "b", "d"),
        ("abc", "dbc", "a", "d"),
        ("abcd", "ad", "bc", ""),
        ("", "ab", "", "ab"),
        ("ab", "", "ab", ""),
    ],
)
def test_the_difference_is_minimal(then: str, now: str, gone: str, come: str) -> None:
    assert diff_pods(tuple(then), tuple(now)) == (tuple(gone), tuple(come))


def test_an_equal_pod_that_is_another_object_is_replaced() -> None:
    one, other = [1], [1]
    gone, come = diff_pods([one], [other])
    assert gone[0] is one
    assert come[0] is other
