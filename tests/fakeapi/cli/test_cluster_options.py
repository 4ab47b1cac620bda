"""The cluster of ``explain``: a live one instead of files, and unknown fields in files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fakeapi import FakeCluster
from tests.builders import node_json, pod_json
from tests.commands import written


class TestLiveCluster:
    @pytest.mark.parametrize("pod", ["POD", "default/vip", "DEPLOYMENT"])
    def test_decisions_are_those_on_files(
        self,
        pod: str,
        tmp_path: Path,
        command_line: Callable[..., int],
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        vip = pod_json("vip", cpu="2", priority=10)
        objects = [node_json(cpu="2"), pod_json("web", on="node-1", cpu="1", priority=1), vip]
        spec = {"template": {"metadata": {}, "spec": vip["spec"]}}
        deployment = {"kind": "Deployment", "metadata": {"name": "vip"}, "spec": spec}
        files = {
            "POD": written(tmp_path, "pod.json", vip),
            "DEPLOYMENT": written(tmp_path, "deployment.json", deployment),
        }
        given = ("--pod", files.get(pod, pod), "-o", "json")
        with FakeCluster.in_thread() as cluster:
            cluster.load(objects)
            sources = (
                ("--server", cluster.url),
                ("--kubeconfig", str(cluster.kubeconfig_path)),
                ("--cluster", written(tmp_path, "cluster.json", *objects)),
            )
            answers = []
            for source in sources:
                assert command_line("explain", "preempt", *source, *given) == 0
                answers.append(json.loads(capsys.readouterr().out))
        assert [victim["name"] for victim in answers[0]["victims"]] == ["web"]
        for answer in answers:
            for victims in (
                answer["victims"],
                *(c["victims"] for c in answer["candidates"].values()),
            ):
                for victim in victims:
                    del victim["uid"]  # a file's pod without a UID gets one from its key
        assert answers[0] == answers[1] == answers[2]

    def test_a_server_that_does_not_answer_is_one_line(
        self, tmp_path: Path, command_line: Callable[..., int], capsys: pytest.CaptureFixture[str]
    ) -> None:
        pod = written(tmp_path, "pod.json", pod_json("vip"))
        code = command_line("explain", "filter", "--server", "http://127.0.0.1:1", "--pod", pod)
        out, err = capsys.readouterr()
        assert (code, out) == (1, "")
        assert err.startswith("reprieve: GET http://127.0.0.1:1/api: ")
        assert err.count("\n") == 1


class TestUnknownFields:
    def explain(
        self, command_line: Callable[..., int], tmp_path: Path, *pods: dict[str, Any]
    ) -> int:
        cluster = written(tmp_path, "cluster.json", node_json(), *pods)
        pod = written(tmp_path, "pod.json", {**pod_json("vip"), "sepc": {}})
        return command_line("explain", "filter", "--cluster", cluster, "--pod", pod)

    def test_a_misspelt_field_is_a_warning(
        self, tmp_path: Path, command_line: Callable[..., int], capsys: pytest.CaptureFixture[str]
    ) -> None:
        odd = pod_json("odd")
        odd["spec"]["priorityClasName"] = "high"
        assert self.explain(command_line, tmp_path, odd) == 0
        unknown = "spec.priorityClasName: unknown field; did you mean priorityClassName?"
        assert capsys.readouterr().err.splitlines() == [
            f"reprieve: warning: {tmp_path}/cluster.json[1]: {unknown}",
            f"reprieve: warning: {tmp_path}/pod.json[0]: sepc: unknown field; did you mean spec?",
        ]

    def test_many_warnings_are_counted(
        self, tmp_path: Path, command_line: Callable[..., int], capsys: pytest.CaptureFixture[str]
    ) -> None:
        odd = [{**pod_json(f"p{i}"), "odd": i} for i in range(25)]
        assert self.explain(command_line, tmp_path, *odd) == 0
        lines = capsys.readouterr().err.splitlines()
        assert (len(lines), lines[20]) == (22, "reprieve: warning: 5 more unknown fields")

    def test_a_warning_is_one_line(
        self, tmp_path: Path, command_line: Callable[..., int], capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert self.explain(command_line, tmp_path, {**pod_json("a"), "a\nb" + "c" * 1000: 1}) == 0
        first, _ = capsys.readouterr().err.splitlines()
        assert first.startswith(f"reprieve: warning: {tmp_path}/cluster.json[1]: a bccc")
        assert len(first) < 600

    def test_an_unknown_class_is_a_warning(
        self, tmp_path: Path, command_line: Callable[..., int], capsys: pytest.CaptureFixture[str]
    ) -> None:
        odd = pod_json("odd")
        odd["spec"]["priorityClassName"] = "bacth"
        assert self.explain(command_line, tmp_path, odd) == 0
        line = "pod default/odd: no PriorityClass 'bacth'; its priority counts as 0"
        assert f"reprieve: warning: {line}" in capsys.readouterr().err.splitlines()
