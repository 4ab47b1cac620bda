"""Lists and watch frames for the extender's reflectors, and then a call of each verb.

An input is a JSON object: ``lists`` and ``frames`` by plural, and the bodies of the ``calls``. A
body or frame is written with one character for each byte.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Any, Final

from structlog.testing import capture_logs

from extender.cluster.event_handlers import build_reflectors
from extender.cluster.scheduler_cache import SchedulerCache
from extender.kube.decoders.typed_decoder import ObjectError
from extender.kube.informers.reflector import ReflectorContext
from extender.kube.rest.client import Client
from extender.kube.rest.rate_limited_log import quiet_log
from extender.kube.rest.transport import Request, Response
from extender.protocol.extender_v1 import ExtenderDecodeError
from extender.server.fallback_policy import DegradedError
from extender.server.service import Service, VerbCall
from fakeapi.apiserver import endpoints
from fakeapi.apiserver.endpoints import Api
from fakeapi.demo.scenarios import captured_request, scenario
from fakeapi.simulation.world import create_world
from policies.preemption.policy import SchedulerRules
from policies.preemption.vectorized import VectorizedEngine
from tests.builders import pod_json
from tests.extender.conftest import filter_body, preempt_body
from tests.fakeapi.apiserver.manual_clock import ManualClock
from tests.fuzz.kind import FailedError, Kind
from tests.fuzz.mutation import mutate_bytes, mutate_document, pick

_RULES: Final = SchedulerRules()
_TYPES: Final = ("ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR", "", "added")
_MORE: Final[Mapping[str, Any]] = {
    "PersistentVolumeClaim": {
        "apiVersion": "v1",
        "metadata": {"name": "data", "namespace": "default"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "fast",
            "volumeName": "v",
            "resources": {"requests": {"storage": "1Gi"}},
        },
        "status": {"phase": "Bound"},
    },
    "PersistentVolume": {
        "apiVersion": "v1",
        "metadata": {"name": "v", "labels": {"topology.kubernetes.io/zone": "a"}},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "csi": {"driver": "d", "volumeHandle": "h"},
            "claimRef": {"namespace": "default", "name": "data"},
            "nodeAffinity": {
                "required": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}
                    ]
                }
            },
        },
    },
    "ResourceSlice": {
        "apiVersion": "resource.k8s.io/v1",
        "metadata": {"name": "s"},
        "spec": {
            "driver": "gpu.example.com",
            "nodeName": "node-1",
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "a", "attributes": {"type": {"string": "x"}}, "capacity": {}}],
        },
    },
    "DeviceClass": {
        "apiVersion": "resource.k8s.io/v1",
        "metadata": {"name": "c"},
        "spec": {"selectors": [{"cel": {"expression": 'device.driver.matches("^gpu")'}}]},
    },
    "ResourceClaim": {
        "apiVersion": "resource.k8s.io/v1",
        "metadata": {"name": "r", "namespace": "default"},
        "spec": {
            "devices": {
                "requests": [{"name": "q", "exactly": {"deviceClassName": "c", "count": 1}}]
            }
        },
    },
    "CSINode": {
        "apiVersion": "storage.k8s.io/v1",
        "metadata": {"name": "node-1"},
        "spec": {"drivers": [{"name": "d", "nodeID": "n", "allocatable": {"count": 2}}]},
    },
    "StorageClass": {
        "apiVersion": "storage.k8s.io/v1",
        "metadata": {"name": "fast"},
        "provisioner": "d",
        "volumeBindingMode": "WaitForFirstConsumer",
    },
}
_PLURALS: Final = {
    "Node": "nodes",
    "Pod": "pods",
    "PodDisruptionBudget": "poddisruptionbudgets",
    "Namespace": "namespaces",
    "Service": "services",
    "ReplicaSet": "replicasets",
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "PersistentVolume": "persistentvolumes",
    "ResourceSlice": "resourceslices",
    "ResourceClaim": "resourceclaims",
    "DeviceClass": "deviceclasses",
    "CSINode": "csinodes",
    "StorageClass": "storageclasses",
}
_VIP: Final = pod_json(
    "vip",
    cpu="4",
    priority=1000,
    labels={"app": "web"},
    spec={
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}],
        "resourceClaims": [{"name": "g", "resourceClaimName": "r"}],
        "nodeSelector": {"a": "b"},
        "tolerations": [{"key": "k", "operator": "Exists"}],
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "zone",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": "web"}},
            }
        ],
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
                ]
            }
        },
    },
)


@cache
def _objects() -> Mapping[str, list[Any]]:
    found: dict[str, list[Any]] = {plural: [] for plural in _PLURALS.values()}
    for each in (*scenario("demo"), *({"kind": kind} | more for kind, more in _MORE.items())):
        if each["kind"] in _PLURALS:
            found[_PLURALS[each["kind"]]].append(each)
    found["pods"].append(_VIP)
    return found


@cache
def _bodies() -> Mapping[str, tuple[bytes, ...]]:
    names = [each["metadata"]["name"] for each in _objects()["nodes"]]
    uids = [each["metadata"].get("uid", "u") for each in _objects()["pods"]]
    return {
        "filter": (
            filter_body(_VIP, *names),
            filter_body(pod_json("plain", cpu="1", priority=5), *names),
            captured_request("filter-cache-false"),
        ),
        "preempt": (
            preempt_body(_VIP, **dict.fromkeys(names[:4], uids[:3])),
            captured_request("preempt-cache-true"),
            captured_request("preempt-cache-false"),
        ),
    }


def generate(rng: Random) -> bytes:
    """Return lists, frames and calls, of which most are changed."""
    lists = {plural: list(objects) for plural, objects in _objects().items()}
    frames: dict[str, list[str]] = {}
    for plural in rng.sample(sorted(lists), 3):
        objects = lists[plural]
        lists[plural] = [_maybe_changed(rng, each) for each in objects]
        frames[plural] = [_frame(rng, objects) for _ in range(rng.randrange(4))]
    calls = [[verb, _changed_body(rng, verb)] for verb in ("filter", "preempt")]
    return json.dumps({"lists": lists, "frames": frames, "calls": calls}).encode()


def _maybe_changed(rng: Random, document: Any) -> Any:
    return mutate_document(rng, document) if rng.random() < 0.6 else document


def _changed_body(rng: Random, verb: str) -> str:
    body = pick(rng, _bodies()[verb])
    if rng.random() < 0.4:
        body = json.dumps(mutate_document(rng, json.loads(body))).encode()
    if rng.random() < 0.2:
        body = mutate_bytes(rng, body)
    return body.decode("latin-1")


def _frame(rng: Random, objects: list[Any]) -> str:
    changed = mutate_document(rng, pick(rng, objects)) if objects else {}
    event: Any = {"type": pick(rng, _TYPES[:3]), "object": changed}
    if rng.random() < 0.2:
        event = mutate_document(rng, {**event, "type": pick(rng, _TYPES)})
    line = json.dumps(event).encode()
    return (mutate_bytes(rng, line) if rng.random() < 0.3 else line).decode("latin-1")


class _EndOfInputError(Exception):
    """The reflector has read the whole input, and asks again."""


@dataclass
class _ScriptedServer:
    """A transport that has one list and one watch for each resource."""

    api: Api
    lists: Mapping[str, list[Any]]
    frames: Mapping[str, list[str]]
    asked: set[tuple[str, str]] = field(default_factory=set)

    async def request(self, request: Request) -> Response:
        plural = request.path.rpartition("/")[2]
        if plural not in self.lists:
            found = self.api.handle(endpoints.Request("GET", request.path))
            assert isinstance(found, endpoints.Response)
            return Response(found.status, found.body, {"content-type": found.content_type})
        self._once("list", plural)
        body = {"metadata": {"resourceVersion": "5"}, "items": self.lists[plural]}
        return Response(200, json.dumps(body).encode())

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[_Lines]:
        plural = request.path.rpartition("/")[2]
        self._once("watch", plural)
        yield _Lines([each.encode("latin-1") for each in self.frames.get(plural, ())])

    async def close(self) -> None:
        """Do nothing."""

    def _once(self, what: str, plural: str) -> None:
        if (what, plural) in self.asked:
            raise _EndOfInputError(plural)
        self.asked.add((what, plural))


class _Lines:
    status = 200
    headers: Mapping[str, str] = {}

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._lines = lines

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for data in self._lines:
            for line in data.split(b"\n"):
                yield line

    async def read(self) -> bytes:
        return b"\n".join(self._lines)


class _HastyClock(ManualClock):
    """A clock on which sleeping takes a few turns of the event loop."""

    async def sleep(self, seconds: float) -> None:
        for _ in range(200):
            await asyncio.sleep(0)
        self.seconds += seconds


async def check(data: bytes) -> None:
    """Fill a scheduler cache by reflectors, and call the extender; raise for an internal error."""
    document = json.loads(data)
    clock = _HastyClock()
    engine = VectorizedEngine(_RULES)
    live = SchedulerCache(clock.monotonic, engine.follow)
    world = create_world(clock)
    server = _ScriptedServer(world.api, document["lists"], document["frames"])
    with capture_logs() as logs:
        context = ReflectorContext(Client(server), clock, Random(0), quiet_log())
        for plural, reflector in build_reflectors(context, live, _RULES).items():
            if plural in document["lists"]:
                await _read_input(reflector.run())
        service = Service(live, engine, clock)
        for verb, body in document["calls"]:
            call = VerbCall(verb, body.encode("latin-1"), clock.monotonic())
            try:
                reply = await service.call(call)
            except (ExtenderDecodeError, ObjectError, DegradedError):
                continue
            reply.record()
            service.scrape()
    for each in logs:
        if each.get("exc_info"):
            error = each["exc_info"]
            if isinstance(error, BaseException):
                raise error
            raise FailedError(repr(each))


async def _read_input(run: Any) -> None:
    try:
        async with asyncio.timeout(20):
            await run
    except _EndOfInputError:
        pass


KIND: Final = Kind("frames", generate, check)
