"""The example of docs/testing-your-extender.md."""

from __future__ import annotations

import re
from typing import Any

from tests.commands import ROOT

TEXT = (ROOT / "docs" / "testing-your-extender.md").read_text()


async def test_the_example_passes() -> None:
    [code] = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)  # noqa: S102 - our own document
    await names["test_only_gpu_nodes_are_left"]()
