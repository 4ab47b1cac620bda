"""A pytest plugin standing in for ``kubernetes_asyncio.e2e_test``, which no package carries."""

from __future__ import annotations

import os
import sys
from types import ModuleType

from kubernetes_asyncio.client.configuration import Configuration

PACKAGE = "kubernetes_asyncio.e2e_test"


def get_e2e_configuration() -> Configuration:
    """Return a configuration that leads to SERVER."""
    configuration = Configuration()
    configuration.host = os.environ["SERVER"]
    return configuration


def _install() -> None:
    package, base = ModuleType(PACKAGE), ModuleType(f"{PACKAGE}.base")
    base.__dict__["get_e2e_configuration"] = get_e2e_configuration
    package.__dict__["base"] = base
    sys.modules.update({PACKAGE: package, base.__name__: base})


_install()
