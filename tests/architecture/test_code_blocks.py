"""Code blocks of the site: their languages, and commands without prompt and output."""

from __future__ import annotations

import pytest

from docs.code_blocks import OUTPUT, SHELL, TEXT, Block, blocks, fenced, language
from docs.hooks import ROOT, pages

SESSION = """\
$ kubectl get pods
NAME   READY

$ kubectl delete \\
    pod a
"""


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("make demo", SHELL),
        (".venv/bin/reprieve demo", SHELL),
        ("KUBECONFIG=k kubectl get pods", SHELL),
        ("host: 127.0.0.1", "yaml"),
        ("- name: a", "yaml"),
        ('{"kind": "Pod"}', "json"),
        ("from fakeapi.testing import FakeCluster", "python"),
        ("async with FakeCluster() as cluster:", "python"),
        ("cluster.faults.plan(", "python"),
        ("  9.9 s  == a burst of pods", TEXT),
        ("NAME   READY", TEXT),
    ],
)
def test_the_first_line_decides_the_language(line: str, expected: str) -> None:
    assert language(line) == expected


def test_commands_and_their_output_are_blocks_of_their_own() -> None:
    assert list(blocks(SESSION.splitlines())) == [
        Block(SHELL, ["kubectl get pods"]),
        Block(OUTPUT, ["NAME   READY", ""]),
        Block(SHELL, ["kubectl delete \\", "    pod a"]),
    ]


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("a\n\n    make demo\n\nb\n", "a\n\n\n```bash\nmake demo\n```\n\nb\n"),
        ("a\n\n    x\n\n      y\n\nb\n", "a\n\n\n```text\nx\n\n  y\n```\n\nb\n"),
        ("```console\n$ ls\na\n```\n", f"\n```bash\nls\n```\n\n```{OUTPUT}\na\n```\n\n"),
        ("- a\n\n    still a\n", "- a\n\n    still a\n"),
        ("- a\n\nb\n\n    code\n", "- a\n\nb\n\n\n```text\ncode\n```\n\n"),
        ("```yaml\na:\n\n    b\n```\n", "```yaml\na:\n\n    b\n```\n"),
        ("a\n    the same paragraph\n", "a\n    the same paragraph\n"),
    ],
)
def test_indented_blocks_become_fenced_ones(markdown: str, expected: str) -> None:
    assert fenced(markdown) == expected


@pytest.mark.parametrize("page", pages())
def test_no_block_of_a_page_keeps_a_prompt(page: str) -> None:
    lines = fenced((ROOT / page).read_text()).splitlines()
    assert [line for line in lines if line.startswith("$ ")] == []
