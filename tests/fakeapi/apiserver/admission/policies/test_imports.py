"""The CEL library and the type checker are imported with the first policy."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import sys
from random import Random
from fakeapi.apiserver.serving.virtual_clock import VirtualClock
from fakeapi.simulation.world import create_api
from tests.fakeapi.admission_policies import POLICIES, policy, validation
from tests.fakeapi.api_requests import MAPS, named, send
api = create_api(VirtualClock(), Random(7), history=100)
assert send(api, "POST", MAPS, named("a")).status == 201
checker = "extender.cel.type_checker"
seen = ["cel" in sys.modules, checker in sys.modules]
assert send(api, "POST", POLICIES, policy("a", validation("true"))).status == 201
print(*seen, "cel" in sys.modules)
"""


def test_nothing_of_cel_is_imported_before_the_first_policy() -> None:
    pytest.importorskip("cel")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "False", "True"]
