"""The names that tests import from ``fakeapi``."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

import fakeapi
from fakeapi.testing.remote_cluster import RemoteCluster

DOCUMENTED = [
    fakeapi.FakeCluster,
    fakeapi.VirtualCluster,
    fakeapi.ProcessCluster,
    RemoteCluster,
    *(getattr(fakeapi.FakeCluster, name) for name in dir(fakeapi.FakeCluster) if name[0] != "_"),
]
BUILTIN = {"AttributeError", "TimeoutError", "TypeError", "ValueError"}


@pytest.mark.parametrize("name", fakeapi.__all__)
def test_a_name_can_be_imported(name: str) -> None:
    assert getattr(fakeapi, name).__name__ == name


def test_every_documented_error_is_exported() -> None:
    texts = " ".join(str(each.__doc__) for each in DOCUMENTED)
    errors = set(re.findall(r"\b[A-Z]\w+Error\b", texts))
    assert errors - BUILTIN <= set(fakeapi.__all__)
    assert {"StatusError", "ManifestError", "ServerVersionError", "WaitTimeoutError"} <= errors


def test_the_package_imports_nothing_before_a_name_is_used() -> None:
    program = "import sys, fakeapi; print(any(m.startswith('fakeapi.') for m in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'fakeapi' has no attribute 'Nothing'"):
        _ = fakeapi.Nothing
