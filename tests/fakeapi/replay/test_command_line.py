"""``reprieve record`` and ``reprieve replay`` in real processes."""

from __future__ import annotations

import asyncio
import json
import signal
from asyncio.subprocess import Process
from collections.abc import Callable
from pathlib import Path

import aiohttp
import pytest

from extender.recording.files import parse_recording, read_recording
from fakeapi import FakeCluster
from tests.commands import reprieve, reprieve_json, start
from tests.extender.recording.recording_lines import an_object, header
from tests.extender.recording.recording_lines import line as recorded_line
from tests.fakeapi.replay.test_preemption import FILE as PREEMPTION_FILE
from tests.fakeapi.replay.test_preemption import ONE_CANDIDATE

TIMEOUT_SECONDS = 60


@pytest.fixture
def short(tmp_path: Path) -> Path:
    path = tmp_path / "short.jsonl"
    path.write_bytes(
        header("Namespace", "Pod")
        + recorded_line(0, "LISTED", an_object("default", "Namespace"))
        + recorded_line(0.1, "ADDED", an_object("a"))
        + recorded_line(0.2, "ADDED", an_object("b"))
        + recorded_line(0.3, "DELETED", an_object("a"))
    )
    return path


async def lines_until(process: Process, expected: bytes) -> bytes:
    """Read standard output up to the line that has ``expected`` in it."""
    assert process.stdout is not None
    read = b""
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while expected not in read.rpartition(b"\n")[2]:
            read = read.rstrip(b"\n") + b"\n" + (await process.stdout.readline()).rstrip(b"\n")
    return read.lstrip(b"\n") + b"\n"


class TestRecord:
    @pytest.mark.slow
    async def test_recording_until_sigint(self, cluster: FakeCluster) -> None:
        cluster.load([an_object("here"), an_object("n", "Node")])
        asked = ("--server", cluster.url, "--out", "-", "--resources", "pods")
        process = await start("record", *asked)
        output = await lines_until(process, b'"BOOKMARK"')
        cluster.load([an_object("new")])
        output += await lines_until(process, b'"name":"new"')
        process.send_signal(signal.SIGINT)
        rest, errors = await process.communicate()
        assert process.returncode == 0, errors
        recording = parse_recording(output + rest, "f")
        assert [(e.type, e.key) for e in recording.events if e.is_object_event] == [
            ("LISTED", "default/here"),
            ("ADDED", "default/new"),
        ]
        assert [each.name for each in recording.header.resources] == ["pods"]
        assert recording.events[-1].type == "BOOKMARK"
        assert errors.decode().splitlines()[-1] == "reprieve: recorded 4 events to standard output"

    @pytest.mark.slow
    async def test_recording_for_some_time(self, cluster: FakeCluster, tmp_path: Path) -> None:
        path = tmp_path / "events.jsonl.gz"
        for_a_while = ("--for", "300ms", "--out", str(path), "--include-sensitive")
        done = await reprieve("record", "--kubeconfig", str(cluster.kubeconfig_path), *for_a_while)
        assert (done.code, done.out) == (0, "")
        recording = read_recording(str(path))
        assert (recording.truncated_at, recording.header.left_out) == ("", ())
        assert {"pods", "nodes", "replicasets.apps"} <= {r.name for r in recording.header.resources}
        assert "default" in {event.key for event in recording.events}


class TestFakeapiRecords:
    @pytest.mark.slow
    async def test_a_kill_loses_little(self, tmp_path: Path) -> None:
        path = tmp_path / "events.jsonl.gz"
        process = await start("fakeapi", "--port", "0", "--record", str(path))
        url = (await lines_until(process, b"listening on")).decode().split()[-1]
        async with aiohttp.ClientSession() as session, asyncio.timeout(TIMEOUT_SECONDS):
            body = an_object("late", "Namespace")
            async with session.post(f"{url}/api/v1/namespaces", json=body) as response:
                assert response.status == 201
            while b"late" not in recorded_bytes(path):
                await asyncio.to_thread(path.stat)
        process.kill()
        await process.communicate()
        recording = read_recording(str(path))
        assert recording.truncated_at
        assert ("ADDED", "late") in {(e.type, e.key) for e in recording.events}

    @pytest.mark.slow
    async def test_a_full_disk_ends_the_process(self) -> None:
        done = await reprieve("fakeapi", "--port", "0", "--record", "/dev/full")
        assert done.code == 1
        error = "--record: /dev/full: cannot be written: No space left on device"
        assert done.err == f"reprieve: {error}\n"


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def recorded_bytes(path: Path) -> bytes:
    try:
        return b" ".join(e.raw for e in read_recording(str(path)).events)
    except ValueError:
        return b""


class TestReplay:
    async def test_the_output_is_one_json_document(self, short: Path) -> None:
        report = await reprieve_json("replay", str(short))
        assert report["same"] is True
        assert report["recording"]["events"] == {"LISTED": 1, "ADDED": 2, "DELETED": 1}
        assert report["resources"]["pods"]["replayed"] == 1

    @pytest.mark.slow
    async def test_text_output_and_speed(self, short: Path) -> None:
        done = await reprieve("replay", str(short), "--speed", "10", "--run", "gc")
        assert (done.code, done.err) == (0, "")
        assert "attached: gc; events left: none" in done.out
        assert "no differences" in done.out

    @pytest.mark.slow
    async def test_with_a_port_the_cluster_is_served_until_sigterm(self, short: Path) -> None:
        asked = ("--port", "0", "--speed", "max", "-o", "json")
        process = await start("replay", str(short), *asked)
        url = (await lines_until(process, b"listening on http")).decode().split()[-1]
        await lines_until(process, b'"same": true')
        async with aiohttp.ClientSession() as session, session.get(f"{url}/api/v1/pods") as pods:
            names = [each["metadata"]["name"] for each in (await pods.json())["items"]]
        process.send_signal(signal.SIGTERM)
        _, errors = await process.communicate()
        assert (names, process.returncode, errors) == (["b"], 0, b"")

    @pytest.mark.slow
    async def test_reprieve_decides_again(self, tmp_path: Path) -> None:
        config = tmp_path / "config.yaml"
        config.write_text(json.dumps({"profiles": ONE_CANDIDATE}))
        extender = ("--extender", "reprieve", "--search", "cluster")
        scheduler = ("--scheduler-config", str(config), "--upstream", "1.37")
        options = ("--run", "scheduler,replicaset", *extender, *scheduler, "-o", "json")
        done = await reprieve("replay", str(PREEMPTION_FILE), *options)
        assert done.code == 0
        report = json.loads(done.out)
        assert report["same"] is True
        preempted = report["scheduling"]["preempted"]
        assert preempted == {"recorded": 6, "replayed": 6, "differences": []}
        logged = [json.loads(each) for each in done.err.splitlines()]
        assert sum(each["event"] == "preempt" for each in logged) == 5

    @pytest.mark.slow
    async def test_a_truncated_file_is_replayed_with_one_warning(self, short: Path) -> None:
        truncate(short)
        done = await reprieve("replay", str(short), "-o", "json")
        warning = f"reprieve: {short}: breaks off in line 5; events up to this point are replayed\n"
        assert (done.code, done.err) == (0, warning)
        assert json.loads(done.out)["resources"]["pods"]["recorded"] == 2


ERRORS = [
    ("record --out f --for soon", "--for: 'soon'; expected a duration such as 90s"),
    ("record --out f --resources widgets", "--resources: no resource 'widgets' can be listed"),
    ("record --out f --kubeconfig x", "--kubeconfig and --server exclude each other"),
    ("record --out /nowhere/f", "--out: /nowhere/f: cannot be written: No such file"),
    ("record", "Missing option '--out'; see reprieve record --help"),
    ("fakeapi --port 0 --record /nowhere/f", "--record: /nowhere/f: cannot be written: No such"),
    ("replay SHORT --speed 0", "--speed: '0'; expected max, or a number above 0"),
    ("replay SHORT --run nodelifecycle", "--run: component 'nodelifecycle' cannot be attached"),
    ("replay SHORT --run x", "--run: no component 'x'"),
    ("replay SHORT --kubelet book", "--kubelet: no kubelets in --run none"),
    ("replay SHORT --extender http://h", "--extender: no scheduler in --run none"),
    ("replay SHORT --extender reprieve", "--extender: no scheduler in --run none"),
    ("replay SHORT --run scheduler --extender h", "--extender: 'h'; expected http://"),
    (
        "replay SHORT --run scheduler --extender http://h --speed max",
        "--speed: max is not possible with a remote extender; expected a number",
    ),
    ("replay SHORT --run scheduler --upstream 1.2", "--upstream: unknown Kubernetes release"),
    ("replay SHORT --run scheduler --scheduler-config /nowhere", "--scheduler-config: /nowhere:"),
    ("replay SHORT --head-start soon", "--head-start: 'soon'; expected a duration such as 10s"),
    ("replay /nowhere/f", "/nowhere/f: cannot be read: No such file"),
    ("replay BAD", "line 6: "),
]


@pytest.mark.parametrize(("line", "error"), ERRORS)
def test_an_error_is_exit_code_2_and_one_line(
    command_line: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
    short: Path,
    line: str,
    error: str,
) -> None:
    if "BAD" in line:
        short.write_bytes(short.read_bytes() + recorded_line(0.4, "ADDED", an_object("Not A Name")))
    words = line.replace("SHORT", str(short)).replace("BAD", str(short)).split()
    with FakeCluster.in_thread() as cluster:
        server = ("--server", cluster.url) if words[0] == "record" else ()
        assert command_line(*words, *server) == 2
    shown = capsys.readouterr()
    assert (shown.out, shown.err.count("\n")) == ("", 1)
    assert error in shown.err


def test_an_unreachable_server_is_exit_code_1(
    command_line: Callable[..., int], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = ("--out", str(tmp_path / "f"))
    assert command_line("record", "--server", "http://127.0.0.1:9", *out) == 1
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("command", ["record", "replay"])
def test_help_has_an_example(
    command_line: Callable[..., int], capsys: pytest.CaptureFixture[str], command: str
) -> None:
    assert command_line(command, "--help") == 0
    assert f"Example: reprieve {command}" in capsys.readouterr().out
