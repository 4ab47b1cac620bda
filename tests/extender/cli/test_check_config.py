"""The exit codes of ``reprieve check-config``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands import reprieve


@pytest.mark.parametrize(("content", "code"), [("port: many", 1), ("port: [", 2), (None, 2)])
async def test_the_exit_code_tells_invalid_files_from_unreadable_ones(
    tmp_path: Path, content: str | None, code: int
) -> None:
    path = tmp_path / "reprieve.yaml"
    if content is not None:
        path.write_text(content)
    assert (await reprieve("check-config", str(path))).code == code
