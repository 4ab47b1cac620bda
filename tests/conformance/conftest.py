"""The real controllers; without Go there are none to compare with."""

from __future__ import annotations

import os

import pytest

from tests.conformance.build import NoGoError, program
from tests.conformance.contenders import Contender, real


@pytest.fixture(scope="session")
def real_controllers() -> Contender:
    """Controllers of a real kube-controller-manager; skips where there is no Go, but not in CI."""
    try:
        return real(program("controllers"))
    except NoGoError as error:
        if "CI" in os.environ:
            raise
        pytest.skip(str(error))
