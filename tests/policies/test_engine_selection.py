"""The vectorized engine decides where it is installed, the reference engine elsewhere."""

from __future__ import annotations

import pytest

from policies import engine_selection
from policies.engine_selection import build_engine
from policies.preemption.engine import Engine
from policies.preemption.policy import DEFAULT_RULES
from policies.preemption.reference_engine import ReferenceEngine
from policies.preemption.vectorized import VectorizedEngine


@pytest.mark.parametrize(
    ("installed", "expected"), [(True, VectorizedEngine), (False, ReferenceEngine)]
)
def test_the_fastest_engine_that_is_installed_decides(
    *, installed: bool, expected: type[Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_selection, "VECTORIZED", installed)
    engine = build_engine(DEFAULT_RULES)
    assert type(engine) is expected
    assert engine.rules is DEFAULT_RULES
