"""The real controllers; without Go there are none to compare with."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from tests.conformance.build import NoGoError, program
from tests.conformance.contenders import Contender, real
from tests.conformance.spreading import BOOK


@pytest.fixture(scope="session")
def real_controllers() -> Contender:
    """Controllers of a real kube-controller-manager; skips where there is no Go, but not in CI."""
    try:
        return real(program("controllers"))
    except NoGoError as error:
        if "CI" in os.environ:
            raise
        pytest.skip(str(error))


@pytest.fixture
def book(tmp_path: Path) -> Path:
    """What the kubelets play that run spread pods."""
    file = tmp_path / "book.yaml"
    file.write_text(yaml.safe_dump(BOOK))
    return file
