"""Laws of decisions by any policy: guards protect victims, and limits hold for candidates."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.testing.full_clusters import full_clusters
from policies.testing.laws import LAWS, Case, Law, the_pod_does_not_fit_beside_a_victim
from policies.testing.strategies import clusters, rich_clusters
from policies.testing.worked_clusters import cases
from tests.properties.policies import shaped_rules


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
@given(data=st.data())
def test_any_cluster(law: Law, data: st.DataObject) -> None:
    assert list(law(data.draw(cases(rich_clusters(), shaped_rules())))) == []


@given(cases(st.one_of(clusters(), full_clusters()), shaped_rules()))
def test_a_cluster_without_constraints(case: Case) -> None:
    assert list(the_pod_does_not_fit_beside_a_victim(case)) == []
