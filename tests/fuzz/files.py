"""Files for commands: configuration, policies, manifests, recordings, plans and scripts.

An input is a JSON object: the ``arguments`` of the command, and its ``files`` by name, with one
character for each byte. A command ends with 0, 1 or 2; stderr has one line for each error.
"""

from __future__ import annotations

import asyncio
import gc
import gzip
import io
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Final

import yaml

from extender.config.strict_decoding import ConfigError
from fakeapi.apiserver.testing.fault_injection import PlanError
from fakeapi.cli.root_command import main
from fakeapi.controlplane.components import read_scheduler_options, read_simulation_script
from fakeapi.controlplane.kubelet.scripts import ScriptError
from fakeapi.controlplane.scheduler.options import SchedulerConfigError
from fakeapi.demo.scenarios import scenario
from fakeapi.simulation.world import create_world
from tests.builders import controller_spec, manifest, node_json, owner, pod_json
from tests.fakeapi.apiserver.manual_clock import ManualClock
from tests.fuzz.kind import FailedError, Kind
from tests.fuzz.mutation import encode_document, mutate_bytes, mutate_document, pick
from tests.fuzz.sample_files import (
    CONFIGURATION,
    KUBELET,
    NODE,
    PLAN,
    POLICY,
    SCENARIO,
    SCHEDULER,
    SCRIPT,
    SUMMARY,
)

ROOT: Final = Path(__file__).parents[2]
_LISTS_ERRORS: Final = ("check-config", "validate", "--config", "--policy")
"""Commands and options of files of which all errors are printed, one in a line."""

_BOMB: Final = b"a: &a [x,x,x,x,x,x,x,x,x]\n" + b"".join(
    b"%c: &%c [%s]\n" % (letter, letter, b",".join([b"*%c" % (letter - 1)] * 9))
    for letter in range(ord("b"), ord("k"))
)

COMMANDS: Final[Mapping[str, Sequence[str]]] = {
    "configuration": ("check-config", "f"),
    "policy": ("explain", "preempt", "--cluster", "c", "--pod", "p", "--policy", "f"),
    "checked policy": ("policy", "check", "f"),
    "settings": ("explain", "filter", "--cluster", "c", "--pod", "p", "--config", "f"),
    "cluster": ("explain", "preempt", "--cluster", "f", "--pod", "p"),
    "pod": ("explain", "filter", "--cluster", "c", "--pod", "f"),
    "replicas": (
        "explain",
        "scaledown",
        "--cluster",
        "f",
        "--replicaset",
        "default/web",
        "--delete",
        "1",
    ),
    "spread": ("explain", "spread", "--cluster", "f", "--workloadspread", "default/web"),
    "evict": (
        *("explain", "evict", "--cluster", "c", "--node", NODE),
        *("--summary", "f", "--eviction-hard", "memory.available<500Mi"),
    ),
    "kubelet": (
        *("explain", "evict", "--cluster", "c", "--node", NODE),
        *("--summary", "s", "--kubelet-config", "f"),
    ),
    "scenario": ("explain", "evict", "--scenario", "f"),
    "validate": ("validate", "workloadspread", "f"),
    "recording": ("replay", "f"),
    "plan": ("plan", "f"),
    "script": ("script", "f"),
    "scheduler": ("scheduler", "f"),
}
"""Commands by what the file ``f`` is; ``c``, ``p`` and ``s`` are valid.

The last three are readers of files of ``reprieve fakeapi``.
"""


@cache
def _valid_files() -> Mapping[str, bytes]:
    cluster = [
        *scenario("demo"),
        node_json(NODE),
        pod_json("a", on=NODE, cpu="1", priority=1),
    ]
    pod = pod_json("vip", cpu="4", priority=1000)
    lines = [json.dumps(each).encode() for each in cluster]
    summary = json.dumps(SUMMARY).encode()
    return {"c": b"\n".join(lines), "p": json.dumps(pod).encode(), "s": summary}


@cache
def _samples() -> Mapping[str, list[Any]]:
    spreads = list(yaml.safe_load_all((ROOT / "docs/workloadspread.yaml").read_text()))
    return {
        "configuration": [CONFIGURATION],
        "policy": [POLICY],
        "checked policy": [POLICY],
        "settings": [CONFIGURATION],
        "cluster": [{"kind": "List", "apiVersion": "v1", "items": scenario("demo")}],
        "pod": [pod_json("vip", cpu="4", priority=1000)],
        "replicas": [{"kind": "List", "apiVersion": "v1", "items": _replicas()}],
        "spread": [{"kind": "List", "apiVersion": "v1", "items": spreads}],
        "evict": [SUMMARY],
        "kubelet": [KUBELET],
        "scenario": [SCENARIO],
        "validate": [each for each in spreads if each["kind"] == "WorkloadSpread"],
        "plan": [PLAN],
        "script": [SCRIPT],
        "scheduler": [SCHEDULER],
    }


def _replicas() -> list[Any]:
    labels = {"app": "web"}
    spec = controller_spec(labels, replicas=2)
    owned = manifest("ReplicaSet", "web", metadata={"uid": "u"}, version="apps/v1", spec=spec)
    reference = owner("web", "ReplicaSet", "apps/v1", controller=True) | {"uid": "u"}
    pods = [
        pod_json(name, on=NODE, labels=labels, metadata={"ownerReferences": [reference]})
        for name in ("a", "b")
    ]
    return [owned, *pods]


@cache
def _recording() -> Sequence[bytes]:
    packed = (ROOT / "tests/recorded/preemption.jsonl.gz").read_bytes()
    return gzip.decompress(packed).splitlines()[:60]


def generate(rng: Random) -> bytes:
    """Return a command with a changed file."""
    name = pick(rng, list(COMMANDS))
    data = _changed_recording(rng) if name == "recording" else _changed_file(rng, name)
    files = {"f": data, **_valid_files()}
    used = {key: data.decode("latin-1") for key, data in files.items() if key in COMMANDS[name]}
    return json.dumps({"arguments": COMMANDS[name], "files": used}).encode()


def _changed_file(rng: Random, name: str) -> bytes:
    if rng.random() < 0.03:
        return pick(rng, (b"", b"\x1f\x8b", _BOMB, b"{}", b"[]", b"null", b"\xff\xfe", b"---\n---"))
    document = mutate_document(rng, pick(rng, _samples()[name]))
    return encode_document(rng, document)


def _changed_recording(rng: Random) -> bytes:
    lines = list(_recording())
    for _ in range(rng.randrange(1, 4)):
        index = pick(rng, (0, rng.randrange(len(lines))))
        if rng.random() < 0.7:
            lines[index] = json.dumps(
                mutate_document(rng, json.loads(_recording()[index]))
            ).encode()
        else:
            lines[index] = mutate_bytes(rng, lines[index])
    data = b"\n".join(lines) + b"\n"
    if rng.random() < 0.3:
        data = gzip.compress(data, mtime=0)
        return mutate_bytes(rng, data) if rng.random() < 0.5 else data
    return data


async def check(data: bytes) -> None:
    """Run the command; raise for a traceback, another exit code, or too many lines."""
    await asyncio.to_thread(_write_and_run, json.loads(data))


def _write_and_run(document: Any) -> None:
    with TemporaryDirectory(prefix="fuzz-") as directory:
        names = {}
        for name, text in document["files"].items():
            path = Path(directory, name)
            path.write_bytes(text.encode("latin-1"))
            names[name] = str(path)
        arguments = [names.get(each, each) for each in document["arguments"]]
        _run(arguments)


def _run(arguments: Sequence[str]) -> None:
    if arguments[0] in _READERS:
        _READERS[arguments[0]](arguments[1])
        return
    out, errors = io.StringIO(), io.StringIO()
    before = sys.argv
    sys.argv = ["reprieve", *arguments]
    code: object = 0
    try:
        with redirect_stdout(out), redirect_stderr(errors):
            main()
    except SystemExit as error:
        code = error.code
    finally:
        sys.argv = before
        gc.unfreeze()  # a command freezes what it has imported, once in a process of its own
    lines = [line for line in errors.getvalue().splitlines() if not _is_no_error(line)]
    if code not in (0, 1, 2, None) or "Traceback" in errors.getvalue():
        raise FailedError(f"exit code {code}: {errors.getvalue()[-500:]}")
    may_be_many = any(each in arguments for each in _LISTS_ERRORS)
    if (len(lines) > 1 and not may_be_many) or not all(map(_is_error_line, lines)):
        raise FailedError(f"{len(lines)} lines: {errors.getvalue()[:500]}")


def _is_no_error(line: str) -> bool:
    """Return whether a line is of the log, or a warning."""
    return line.startswith(('{"', "reprieve: warning: ")) or line.endswith(
        "events up to this point are replayed"
    )


def _is_error_line(line: str) -> bool:
    return line.startswith("reprieve: ")


def _read_plan(path: str) -> None:
    try:
        create_world(ManualClock()).management.faults.read(Path(path).read_bytes())
    except PlanError as error:
        _require_one_line(str(error))


def _read_script(path: str) -> None:
    try:
        read_simulation_script(Path(path).read_bytes())
    except ScriptError as error:
        _require_one_line(str(error))


def _read_scheduler(path: str) -> None:
    try:
        read_scheduler_options(Path(path).read_bytes(), "", None, "")
    except (SchedulerConfigError, ConfigError) as error:
        _require_one_line(str(error))


def _require_one_line(message: str) -> None:
    if "\n" in message or not message:
        raise FailedError(f"no error of one line: {message[:500]!r}")


_READERS: Final[Mapping[str, Callable[[str], None]]] = {
    "plan": _read_plan,
    "script": _read_script,
    "scheduler": _read_scheduler,
}

KIND: Final = Kind("files", generate, check)
