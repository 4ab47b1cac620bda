"""CustomResourceDefinitions that are installed with a control-plane component.

A component that manages custom resources needs their definition, so it is installed at the start.
The definition is the one in deploy/crds, as JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import orjson

SHIPPED_DEFINITIONS: Final[Mapping[str, str]] = {"workloadspread": "workloadspreads.json"}
"""The file with the definition of each component's kind."""


def shipped_definitions(components: Iterable[str]) -> list[dict[str, Any]]:
    """Return the definitions that are installed with some control-plane components."""
    files = [SHIPPED_DEFINITIONS[part] for part in components if part in SHIPPED_DEFINITIONS]
    return [orjson.loads(Path(__file__).with_name(file).read_bytes()) for file in files]
