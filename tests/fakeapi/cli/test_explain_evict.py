"""``reprieve explain evict`` as a command: a document, or one line and exit code 2."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.builders import encoded, node_json, pod_json
from tests.commands import Done, written
from tests.extender.eviction.documents import measured, summary

HARD = ("--eviction-hard", "memory.available<500Mi")
CLUSTER = (node_json("node-1"), pod_json("hog", on="node-1"), pod_json("calm", on="node-1"))
SAMPLE = summary(400, measured("hog", 700), measured("calm", 100))


Run = Callable[..., Done]


@pytest.fixture
def reprieve(command_line: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command line in this process."""
    return lambda *arguments: Done(command_line(*arguments), *capsys.readouterr())


@pytest.fixture
def node(tmp_path: Path) -> tuple[str, ...]:
    """Return the options for a node under memory pressure."""
    cluster = written(tmp_path, "cluster.json", *CLUSTER)
    sample = written(tmp_path, "summary.json", SAMPLE)
    return ("--cluster", cluster, "--node", "node-1", "--summary", sample)


def test_the_output_is_one_json_document(reprieve: Run, node: tuple[str, ...]) -> None:
    done = reprieve("explain", "evict", *node, *HARD, "-o", "json")
    assert (done.code, done.err) == (0, "")
    document = json.loads(done.out)
    assert document["order"] == ["default/hog", "default/calm"]
    assert (document["evict"], document["gracePeriodSeconds"]) == ("default/hog", 1)


def test_the_default_output_is_a_table(reprieve: Run, node: tuple[str, ...]) -> None:
    done = reprieve("explain", "evict", *node, *HARD)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("node-1 under MemoryPressure evicts default/hog (1 s)\n")


def test_all_flags_reach_the_answer(reprieve: Run, node: tuple[str, ...], tmp_path: Path) -> None:
    config = tmp_path / "kubelet.yaml"
    config.write_text("{kind: KubeletConfiguration, evictionMaxPodGracePeriod: 60}")
    done = reprieve(
        *("explain", "evict", *node, "--summary", node[-1]),
        *("--eviction-hard", "pid.available<1", "--eviction-hard", "nodefs.available<1"),
        *("--eviction-soft", "memory.available<500Mi", "--grace-period", "memory.available=0s"),
        *("--minimum-reclaim", "memory.available=1Gi", "--kubelet-config", str(config)),
        *("--layout", "split", "--upstream", "1.30", "--now", "2026-01-02T15:04:05Z"),
        *("-o", "json"),
    )
    document = json.loads(done.out)
    assert (document["evict"], document["gracePeriodSeconds"]) == (None, 0)
    assert document["message"].startswith("no pod is ranked, because the kubelet's first round")
    assert (document["layout"], document["samples"][1]["at"]) == ("split", "2026-01-02T15:04:05Z")
    assert "nodefs.available" in "".join(document["notes"])


def test_a_summary_on_standard_input(
    reprieve: Run, node: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(encoded(SAMPLE))))
    done = reprieve("explain", "evict", *node[:-1], "-", *HARD, "-o", "json")
    assert json.loads(done.out)["evict"] == "default/hog"


def test_a_scenario(reprieve: Run, tmp_path: Path) -> None:
    threshold = {"signal": "memory.available", "value": {"quantity": "500Mi"}}
    document = {
        "config": {"thresholds": [threshold]},
        "pods": [pod_json("hog")],
        "steps": [{"summary": SAMPLE}],
    }
    path = written(tmp_path, "scenario.json", document)
    [step] = json.loads(reprieve("explain", "evict", "--scenario", path, "-o", "json").out)["steps"]
    assert [each["pod"] for each in step["evicted"]] == ["hog"]
    assert "MemoryPressure" in reprieve("explain", "evict", "--scenario", path).out


def test_help_has_an_example(reprieve: Run) -> None:
    assert "Example: reprieve explain evict --cluster" in reprieve("explain", "evict", "--help").out


ERRORS = [
    ("", "explain evict needs --node and --summary, or --scenario"),
    ("--scenario none.json", "none.json: cannot be read: No such file"),
    ("--scenario S", "S[0]: (the object): object missing required field config"),
    ("--cluster C --node nope --summary S", "--node: no node 'nope' in --cluster"),
    ("--cluster C --node node-1 --summary C", "[0]: (the object): object missing required field"),
    ("--cluster C --node node-1 --summary none.json", "none.json: cannot be read"),
    ("--cluster none.json --node node-1 --summary S", "none.json: cannot be read"),
    ("--cluster C --node node-1 --summary S --upstream 1.12", "unknown Kubernetes release '1.12'"),
    ("--cluster C --node node-1 --summary S --layout two", "--layout: expected one, dedicated-"),
    (
        "--cluster C --node node-1 --summary S --eviction-soft memory.available<1Gi",
        "grace period must be specified for the soft eviction threshold memory.available",
    ),
    (
        "--cluster C --node node-1 --summary S --eviction-hard memory.available<10x",
        "--eviction-hard memory.available<10x: quantities must match the regular expression",
    ),
    ("--cluster C --node node-1 --summary S --now noon", "'noon'; expected a time such as"),
]


@pytest.mark.parametrize(("line", "problem"), ERRORS, ids=[line for line, _ in ERRORS])
def test_an_error_is_exit_code_2_and_one_line(
    reprieve: Run, node: tuple[str, ...], line: str, problem: str
) -> None:
    files = {"C": node[1], "S": node[-1]}
    done = reprieve("explain", "evict", *(files.get(word, word) for word in line.split()))
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("reprieve: ")
    assert problem.replace("S[0]", f"{node[-1]}[0]") in done.err
    assert done.err.count("\n") == 1
