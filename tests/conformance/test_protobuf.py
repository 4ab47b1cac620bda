"""Go's decoder reads our protobuf, and Go's clients work with nothing else."""

from __future__ import annotations

import asyncio
import subprocess
from base64 import b64encode
from pathlib import Path
from typing import Any

import orjson
import pytest

from fakeapi import FakeCluster
from fakeapi.apiserver.wire.protobuf_encoder import encode_protobuf
from tests.conformance.scheduling.releases import built
from tests.fakeapi.apiserver.wire.test_protobuf import RECORDED, without_nulls
from tests.fakeapi.apiserver.wire.test_protobuf_encoder import without_item_kinds


@pytest.fixture(scope="module")
def go() -> Path:
    return built("protobuf")


def test_go_decodes_every_kind_to_the_same_json(go: Path) -> None:
    bodies = [encode_protobuf(orjson.dumps(sample["json"])) or b"" for sample in RECORDED.values()]
    lines = b"".join(b64encode(body) + b"\n" for body in bodies)
    decoded = subprocess.run([go, "decode"], input=lines, stdout=subprocess.PIPE, check=True)
    documents = map(orjson.loads, decoded.stdout.splitlines())
    for (name, sample), document in zip(RECORDED.items(), documents, strict=True):
        expected = without_item_kinds(without_nulls(sample["json"]))
        assert without_nulls(document) == expected, name


async def test_clientsets_and_informers_work_in_protobuf_only(go: Path) -> None:
    async with FakeCluster() as cluster:
        process = await asyncio.create_subprocess_exec(
            go, "clients", cluster.url, stdout=asyncio.subprocess.PIPE
        )
        async with asyncio.timeout(60):
            output, _ = await process.communicate()
    assert process.returncode == 0
    steps: list[dict[str, Any]] = [orjson.loads(line) for line in output.splitlines()]
    assert [next(iter(step)) for step in steps] == [
        "definition",
        "definitions",
        "service",
        "missing",
        "added",
        "deleted",
        "removed",
    ]
    seen = {name: value for step in steps for name, value in step.items()}
    assert seen["definition"] == seen["definitions"]
    properties = seen["definition"][0]["schema"]["openAPIV3Schema"]["properties"]
    assert properties == {
        "size": {"type": "integer", "maximum": 10, "default": 3},
        "tags": {"type": "object", "additionalProperties": {"type": "string"}},
        "list": {"type": "array", "items": {"type": "string"}},
    }
    assert seen["service"] == {"a": "1", "b": "2"}
    assert seen["missing"] == 'pods "missing" not found'
    assert seen["added"]["containers"][0]["image"] == "nginx"
    assert seen["added"]["tolerations"][0]["tolerationSeconds"] == 300
    assert (seen["deleted"], seen["removed"]) == ("web", None)
