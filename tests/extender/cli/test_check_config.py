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


async def test_an_error_is_one_line_whatever_it_quotes(tmp_path: Path) -> None:
    path = tmp_path / "reprieve.json"
    path.write_text(r'{"port": 1, "degraded": {"late": {"a\n\u2028b": 1}}}')
    done = await reprieve("check-config", str(path))
    assert (done.code, len(done.err.splitlines())) == (1, 1)
