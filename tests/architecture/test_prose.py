"""The prose check finds wording to avoid in prose only; ``make check`` runs it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.architecture.prose import findings, main


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('"""Give a name."""\n', [(1, "Give")]),
        ('r"""Tell whether it fits."""\n', [(1, "Tell")]),
        ('def a():\n    """Say why."""\n', [(2, "Say")]),
        ('A = 1\n"""Give for an attribute."""\n', [(2, "Give")]),
        ('# a comment\n\n"""Give a name."""\n', [(3, "Give")]),
        ('"""Given a name, return it. Say: no."""\n', []),
        ('"""The result.\n\nNobody calls it; the pods\nare\n    told.\n"""\n', [
            (3, "Nobody"), (4, "are told"),
        ]),
        ("A = 1  # whoever reads this\n", [(1, "whoever")]),
        ("# the pods who\n# goes first\n", [(1, "who goes")]),
        ('A = "nobody"\nf("""Give""", "whom")\nA = (\n    "somebody"\n)\n', []),
        ('"""Run as ``nobody``, see `whom`."""\nwhoever = 1  # `is told`\n', []),
        ("whose = is_told = 1  # untold, whomever, the pod is toldings\n", []),
        ('"""One."""\n\n\ndef é(x="whom"):  # the log says so\n    """Two."""\n', [(4, "says so")]),
    ],
)  # fmt: skip
def test_docstrings_and_comments_are_read(text: str, found: list[tuple[int, str]]) -> None:
    assert [each[:2] for each in findings(text, is_python=True)] == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("# Whom it serves\n", [(1, "Whom")]),
        ("It works.\n\nIt stands in\nfor a scheduler.\n", [(3, "stands in for")]),
        ("One ` here.\n\nwhom ` there.\n", [(3, "whom")]),
        ("Give it a name, tell it, say it.\n", []),
        ("| who | what came of it |\n|---|---|\n", [(1, "came of it")]),
        ("- one\n  - somebody\n", [(2, "somebody")]),
        ("    nobody\n", [(1, "nobody")]),
        ("Text:\n\n    nobody\n\n    somebody\n\nWhoever\n", [(7, "Whoever")]),
        ("```\nnobody\n```\n\n~~~yaml\nwhom\n~~~\nsomebody\n", [(8, "somebody")]),
        ("User `nobody`, ``a ` whom``, and [a link](nobody.md#whom).\n", []),
    ],
)
def test_markdown_is_read_without_code(text: str, found: list[tuple[int, str]]) -> None:
    assert [each[:2] for each in findings(text, is_python=False)] == found


def test_every_finding_has_advice() -> None:
    [found] = findings('"""Tell whether it fits."""\n', is_python=True)
    assert found.advice == "Return whether …"


def test_the_command_prints_findings_and_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, module = tmp_path / "page.md", tmp_path / "module.py"
    page.write_text("All clear.\n")
    module.write_text('"""Ready."""\n')
    assert main([str(page), str(module)]) == 0
    module.write_text('"""Give a name."""\n')
    assert main([str(page), str(module)]) == 1
    assert capsys.readouterr().out == f"{module}:1: 'Give': write: Return …\n"
