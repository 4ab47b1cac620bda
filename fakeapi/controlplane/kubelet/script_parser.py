"""The parser of simulation scripts: one YAML or JSON document, or an annotation of a pod or node.

    register:
    - {name: "node-{:03}", count: 100, capacity: {cpu: "8", memory: 32Gi}}
    pods:
    - match: {labels: {app: web}, namespaces: [shop]}
      start: 2s
      stages:
      - {memory: 50Mi}
      - {after: 5s, ready: true}
      - {after: 60s, memory: 300Mi, over: 30s}
    - match: {names: ["job-*"]}
      stages: [{after: 20s, exit: 0}]
    nodes:
    - match: {names: [node-007]}
      stages: [{after: 5m, silent: true}, {after: 90s, silent: false}]

The annotation has the format of an entry of ``pods`` or ``nodes``, without ``match``. All fields
are documented in docs/kubelet.md. An error is one line that names the field.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, TypeVar

import msgspec
import yaml
from msgspec import Struct

from extender.kube.decoders.kubelet.config import KubeletConfig
from extender.kube.decoders.yaml_loader import load_document
from fakeapi.controlplane.kubelet.scripts import (
    AMOUNTS,
    MAX_NODES,
    ContainerScript,
    Exit,
    LogWrite,
    NodeRegistration,
    NodeScript,
    ObjectSelector,
    PodScript,
    Run,
    ScriptError,
    ScriptSource,
    SimulationScript,
    Steps,
    Stop,
    Transition,
)
from fakeapi.controlplane.kubelet.usage_curves import SECOND, CurveStep
from policies.eviction.config import ResolvedConfig, resolve
from policies.eviction.filesystems import DEDICATED_IMAGES, ONE_FILESYSTEM
from policies.eviction.kubelet_releases import NEWEST_EVICTION
from policies.eviction.thresholds import ThresholdError
from policies.kubernetes.duration import parse_duration
from policies.kubernetes.quantity import QuantityError, parse_quantity, units

ALWAYS: Final = 10**9
"""The number of failing image pulls if all of them fail."""
_MAX_SECONDS: Final = 10**9
_PLACE: Final = re.compile(r"\{0?(?::0?[0-9]{0,2}d?)?\}")
Amount = str | int | float
Duration = str | int | float

T = TypeVar("T")


class _StrictDoc(Struct, forbid_unknown_fields=True, rename="camel"):
    """A part of the document; unknown fields are errors."""


class _UsageDoc(_StrictDoc):
    after: Duration = 0
    over: Duration = 0
    cpu: Amount | None = None
    memory: Amount | None = None
    disk: Amount | None = None
    logs: Amount | None = None
    inodes: Amount | None = None
    processes: Amount | None = None


class _StageDoc(_UsageDoc):
    ready: bool | None = None
    log: str = ""
    volumes: dict[str, Amount] = {}
    exit: int | None = None
    reason: str = ""
    message: str = ""


class _NodeStageDoc(_UsageDoc):
    images: Amount | None = None
    silent: bool | None = None
    ready: bool | None = None


class _StopDoc(_StrictDoc):
    after: Duration = 1
    exit: int = 0


class _ContainerDoc(_StrictDoc):
    stages: list[_StageDoc] | None = None
    runs: list[list[_StageDoc]] | None = None
    stop: Duration | _StopDoc | None = None
    failed_pulls: int | str = 0


class _MatchDoc(_StrictDoc):
    names: list[str] = []
    namespaces: list[str] = []
    nodes: list[str] = []
    labels: dict[str, str] = {}


class _PodDoc(_ContainerDoc):
    start: Duration = 1
    containers: dict[str, _ContainerDoc] = {}


class _PodEntry(_PodDoc):
    match: _MatchDoc = msgspec.field(default_factory=_MatchDoc)


class _NodeDoc(_StrictDoc):
    stages: list[_NodeStageDoc] = []
    image_disk: Amount = 0
    config: dict[str, Any] = {}


class _NodeEntry(_NodeDoc):
    match: _MatchDoc = msgspec.field(default_factory=_MatchDoc)


class _RegistrationDoc(_StrictDoc):
    name: str
    count: int = 1
    labels: dict[str, str | list[str]] = {}
    annotations: dict[str, str] = {}
    taints: list[dict[str, str]] = []
    capacity: dict[str, Amount] = {}
    reserved: dict[str, Amount] = {}


class _SimulationScriptDoc(_StrictDoc):
    pods: list[_PodEntry] = []
    nodes: list[_NodeEntry] = []
    register: list[_RegistrationDoc] = []
    events: bool = True


def parse_script(text: str | bytes) -> SimulationScript:
    """Parse a whole document. Raise ScriptError."""
    document = _read(text, _SimulationScriptDoc)
    return SimulationScript(
        pods=tuple(
            (_match(each.match), _pod(each, f"pods[{index}]."))
            for index, each in enumerate(document.pods)
        ),
        nodes=tuple(
            (_match(each.match), _node(each, f"nodes[{index}]."))
            for index, each in enumerate(document.nodes)
        ),
        register=tuple(
            _registration(each, f"register[{index}].")
            for index, each in enumerate(document.register)
        ),
        events=document.events,
    )


def load_script(script: ScriptSource) -> SimulationScript:
    """Parse a document, or its YAML; an empty one is an empty script. Raise ScriptError."""
    if isinstance(script, Mapping):
        script = msgspec.json.encode(script)
    return parse_script(script)


@lru_cache(maxsize=1024)
def parse_pod_script(text: str) -> PodScript:
    """Parse a pod's annotation. Raise ScriptError."""
    return _pod(_read(text, _PodDoc), "")


@lru_cache(maxsize=1024)
def parse_node_script(text: str) -> NodeScript:
    """Parse a node's annotation. Raise ScriptError."""
    return _node(_read(text, _NodeDoc), "")


def _read(text: str | bytes, shape: type[T]) -> T:
    try:
        found = load_document(text)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ScriptError(f"neither YAML nor JSON: {' '.join(str(error).split())}") from None
    try:
        return msgspec.convert({} if found is None else found, shape)
    except msgspec.ValidationError as error:
        raise _decode_error(error, "") from None


def _decode_error(error: msgspec.ValidationError, where: str) -> ScriptError:
    """Convert msgspec's error; ``where`` is the field path of the document."""
    problem, _, place = " ".join(str(error).split()).partition(" - at ")
    below = place.strip("`").removeprefix("$").removeprefix(".")
    at = ".".join(filter(None, (where, below))) or "(the document)"
    return ScriptError(f"{at}: {problem[:1].lower()}{problem[1:]}".replace("`", ""))


def _match(document: _MatchDoc) -> ObjectSelector:
    return ObjectSelector(
        tuple(document.names), tuple(document.namespaces), tuple(document.nodes), document.labels
    )


def _pod(document: _PodDoc, where: str) -> PodScript:
    return PodScript(
        start=_nanoseconds(document.start, f"{where}start"),
        default=_container(document, where),
        containers={
            name: _container(each, f"{where}containers.{name}.")
            for name, each in document.containers.items()
        },
    )


def _container(document: _ContainerDoc, where: str) -> ContainerScript:
    if document.stages is not None and document.runs is not None:
        raise ScriptError(f"{where}runs: expected either stages or runs, got both")
    if document.runs == []:
        raise ScriptError(f"{where}runs: expected at least one run")
    runs = [_run(each, f"{where}runs[{index}]") for index, each in enumerate(document.runs or ())]
    return ContainerScript(
        tuple(runs) or (_run(document.stages or (), f"{where}stages"),),
        _stop(document.stop, f"{where}stop"),
        _failures(document.failed_pulls, f"{where}failedPulls"),
    )


def _stop(document: Duration | _StopDoc | None, where: str) -> Stop:
    if document is None:
        return Stop()
    if isinstance(document, _StopDoc):
        return Stop(_nanoseconds(document.after, f"{where}.after"), document.exit)
    return Stop(_nanoseconds(document, where))


def _failures(count: int | str, where: str) -> int:
    if count == "always":
        return ALWAYS
    if not isinstance(count, int) or count < 0:
        raise ScriptError(f"{where}: expected a number of failures or always, got {count!r}")
    return count


def _run(stages: Sequence[_StageDoc], where: str) -> Run:
    times = _times(stages, where)
    exits = [index for index, stage in enumerate(stages) if stage.exit is not None]
    if exits and exits[0] < len(stages) - 1:
        raise ScriptError(f"{where}[{exits[0]}].exit: expected to be in the last stage")
    timed = tuple(zip(times, stages, strict=True))
    last = stages[-1] if exits else None
    return Run(
        tuple(Transition(at, stage.ready) for at, stage in timed if stage.ready is not None),
        _steps(stages, times, where),
        _volumes(stages, times, where),
        Exit(times[-1], last.exit or 0, last.reason, last.message) if last else None,
        tuple(LogWrite(at, stage.log) for at, stage in timed if stage.log),
    )


def _volumes(stages: Sequence[_StageDoc], times: Sequence[int], where: str) -> Steps:
    found: dict[str, list[CurveStep]] = {}
    for index, (at, stage) in enumerate(zip(times, stages, strict=True)):
        over = _nanoseconds(stage.over, f"{where}[{index}].over")
        for name, amount in stage.volumes.items():
            used = _amount(amount, f"{where}[{index}].volumes.{name}")
            found.setdefault(name, []).append(CurveStep(at, units(used), over))
    return {name: tuple(steps) for name, steps in found.items()}


def _node(document: _NodeDoc, where: str) -> NodeScript:
    stages, place = document.stages, f"{where}stages"
    times = _times(stages, place)

    def transitions(value_of: Callable[[_NodeStageDoc], bool | None]) -> tuple[Transition, ...]:
        pairs = ((at, value_of(stage)) for at, stage in zip(times, stages, strict=True))
        return tuple(Transition(at, to) for at, to in pairs if to is not None)

    image_disk = units(_amount(document.image_disk, f"{where}imageDisk"))
    return NodeScript(
        steps=_steps(stages, times, place),
        silence=transitions(lambda stage: stage.silent),
        readiness=transitions(lambda stage: stage.ready),
        image_disk=image_disk,
        config=document.config,
        plan=_plan(document.config, image_disk, f"{where}config"),
    )


def _plan(config: Mapping[str, Any], image_disk: int, where: str) -> ResolvedConfig:
    layout = DEDICATED_IMAGES if image_disk else ONE_FILESYSTEM
    try:
        decoded = msgspec.convert(config, KubeletConfig)
        return resolve(decoded.configuration(layout, NEWEST_EVICTION))
    except ThresholdError as error:
        place = f"{where}.{error.field}" if error.field else where
        raise ScriptError(f"{place}: {error}") from None
    except msgspec.ValidationError as error:
        raise _decode_error(error, where) from None


def _times(stages: Sequence[_UsageDoc], where: str) -> list[int]:
    """Return the times of stages, counted from the start of the first one."""
    times, at = [], 0
    for index, stage in enumerate(stages):
        at += _nanoseconds(stage.after, f"{where}[{index}].after")
        times.append(at)
    return times


def _steps(stages: Sequence[_UsageDoc], times: Sequence[int], where: str) -> Steps:
    found: dict[str, list[CurveStep]] = {}
    for index, (at, stage) in enumerate(zip(times, stages, strict=True)):
        over = _nanoseconds(stage.over, f"{where}[{index}].over")
        for name in AMOUNTS:
            amount = getattr(stage, name, None)
            if amount is not None:
                nanos = _amount(amount, f"{where}[{index}].{name}")
                used = nanos if name == "cpu" else units(nanos)
                found.setdefault(name, []).append(CurveStep(at, used, over))
    return {name: tuple(steps) for name, steps in found.items()}


def _registration(document: _RegistrationDoc, where: str) -> NodeRegistration:
    for part in ("capacity", "reserved"):
        for name, amount in getattr(document, part).items():
            _amount(amount, f"{where}{part}.{name}")
    return NodeRegistration(
        names=tuple(_names(document, where)),
        labels={
            name: (value,) if isinstance(value, str) else tuple(value)
            for name, value in document.labels.items()
        },
        annotations=document.annotations,
        taints=tuple(document.taints),
        capacity={name: str(amount) for name, amount in document.capacity.items()},
        reserved={name: str(amount) for name, amount in document.reserved.items()},
    )


def _names(document: _RegistrationDoc, where: str) -> Iterable[str]:
    if not 0 <= document.count <= MAX_NODES:
        raise ScriptError(f"{where}count: {document.count}; expected 0 to {MAX_NODES}")
    if len(_PLACE.findall(document.name)) > 1 or set("{}") & set(_PLACE.sub("", document.name)):
        raise ScriptError(f"{where}name: expected one place for a number, such as {{}} or {{:03}}")
    names = [document.name.format(index) for index in range(document.count)]
    if len(set(names)) < len(names):
        raise ScriptError(f"{where}name: expected a place for the number, {{}}, in it")
    return names


def _nanoseconds(value: Duration, where: str) -> int:
    """Parse a duration such as ``1m30s``, or a number of seconds."""
    if isinstance(value, int | float):
        if not 0 <= value <= _MAX_SECONDS:
            raise ScriptError(f"{where}: expected 0 to {_MAX_SECONDS} seconds, got {value}")
        return round(value * SECOND)
    try:
        nanoseconds = parse_duration(value)
    except ValueError:
        nanoseconds = -1
    if nanoseconds < 0:
        raise ScriptError(f"{where}: expected a duration such as 1m30s, got {value!r}")
    return nanoseconds


def _amount(value: Amount, where: str) -> int:
    """Parse an amount in nanos (nanocores, of CPU)."""
    try:
        nanos = parse_quantity(str(value))
    except QuantityError as error:
        raise ScriptError(f"{where}: {error}") from None
    if nanos < 0:
        raise ScriptError(f"{where}: expected an amount that is not negative, got {value}")
    return nanos
