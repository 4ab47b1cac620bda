"""Parser of plans in JSON or YAML.

An example of a plan:

    seed: 7                                  # default: the seed of the world
    faults:
    - fault: 503                             # 403 429 500 503 504 latency drop cut lag
      retryAfter: 2                          # silence expire compact stale duplicate
      match: {verbs: [create, patch], resources: [pods, apps/deployments], clients: "kubectl*"}
      times: 3                               # and after, every, probability, from, until
    - {fault: drop, when: after, match: {verbs: create, resources: pods, subresources: binding}}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

from fakeapi.apiserver.kinds import ResourceRegistry
from fakeapi.apiserver.testing.fault_injection import effects
from fakeapi.apiserver.testing.fault_injection.effects import Effect, When
from fakeapi.apiserver.testing.fault_injection.plan import (
    FaultPlan,
    FaultRule,
    Limits,
    ResourceName,
    Scope,
)
from fakeapi.apiserver.testing.fault_injection.plan_validation import (
    PlanError,
    PlanReader,
    validate_rule,
)
from fakeapi.apiserver.wire.errors import StatusError
from fakeapi.apiserver.wire.yaml_decoder import read_yaml


def read_plan(text: bytes, kinds: ResourceRegistry, seed: int) -> FaultPlan:
    """Parse a plan in JSON or YAML. Raise PlanError."""
    try:
        document = read_yaml(text)
    except StatusError as error:
        raise PlanError(f"plan: {error.message}") from None
    return parse_plan(document, kinds, seed)


def parse_plan(document: Any, kinds: ResourceRegistry, seed: int) -> FaultPlan:
    """Parse a plan whose resources are among ``kinds``. Raise PlanError.

    ``seed`` is used if the plan has none.
    """
    fields = PlanReader(document, "")
    seed = fields.count("seed", seed)
    rules = tuple(_rule(each, kinds) for each in fields.objects("faults"))
    fields.finish()
    if not rules:
        raise fields.error("faults", "at least one fault")
    return FaultPlan(rules, seed)


def _rule(fields: PlanReader, kinds: ResourceRegistry) -> FaultRule:
    name = fields.choice("fault", EFFECTS)
    effect = EFFECTS[name](fields)
    scope = _scope(fields)
    limits = _limits(fields)
    fields.finish()
    validate_rule(effect, scope, kinds, fields.field_path("match"))
    return FaultRule(effect, scope, limits, fields.document)


def _scope(fields: PlanReader) -> Scope:
    if not fields.has("match"):
        return Scope()
    match = PlanReader(fields.document["match"], fields.field_path("match"))
    scope = Scope(
        clients=match.texts("clients"),
        verbs=match.texts("verbs"),
        resources=tuple(map(_resource, match.texts("resources"))),
        subresources=match.texts("subresources"),
        namespaces=match.texts("namespaces"),
        names=match.texts("names"),
        paths=match.texts("paths"),
    )
    match.finish()
    return scope


def _resource(text: str) -> ResourceName:
    group, slash, plural = text.rpartition("/")
    return ResourceName(group if slash else None, plural)


def _limits(fields: PlanReader) -> Limits:
    limits = Limits(
        times=fields.count("times", 1, 1) if fields.has("times") else None,
        after=fields.count("after", 0),
        every=fields.count("every", 1, 1),
        probability=fields.number("probability", 1.0),
        start=fields.number("from", 0.0),
        end=fields.number("until", 0.0) if fields.has("until") else None,
    )
    if not 0 < limits.probability <= 1:
        raise fields.error("probability", "a number above 0 and up to 1")
    if limits.end is not None and limits.end <= limits.start:
        raise fields.error("until", f"more than from, which is {limits.start:g}")
    return limits


def _latency(fields: PlanReader) -> Effect:
    when = _when(fields)
    if fields.has("seconds"):
        if fields.has("least") or fields.has("most"):
            raise fields.error("seconds", "either seconds, or least and most")
        seconds = fields.number("seconds", 0.0)
        return effects.Latency(seconds, seconds, when)
    if not fields.has("most"):
        raise fields.error("seconds", "seconds, or least and most")
    least, most = fields.number("least", 0.0), fields.number("most", 0.0)
    if least > most:
        raise fields.error("least", f"no more than most, which is {most:g}")
    return effects.Latency(least, most, when)


def _error_effect(code: int) -> Callable[[PlanReader], Effect]:
    if code == 403:
        return lambda fields: effects.Refusal(code, message=fields.text("message", ""))
    usual = 1 if code == 429 else 0
    return lambda fields: effects.Refusal(code, fields.count("retryAfter", usual))


def _when(fields: PlanReader) -> When:
    after: Literal["after"] = "after"
    return after if fields.choice("when", ("before", "after"), "before") == after else "before"


def _drop(fields: PlanReader) -> Effect:
    when, frames = _when(fields), fields.count("afterFrames", 0)
    if frames and when == "before":
        raise fields.error("afterFrames", "when: after, since before there is no frame")
    return effects.Drop(when, frames)


def _cut(fields: PlanReader) -> Effect:
    clean = fields.choice("end", ("abrupt", "clean"), "abrupt") == "clean"
    return effects.Cut("clean" if clean else "abrupt", fields.count("afterFrames", 0))


def _lag(fields: PlanReader) -> Effect:
    if not fields.has("seconds"):
        raise fields.error("seconds", "how long frames are held back")
    return effects.Lag(fields.number("seconds", 0.0))


def _silence(fields: PlanReader) -> Effect:
    seconds = fields.number("seconds", 0.0) if fields.has("seconds") else None
    return effects.Silence(seconds, fields.count("afterFrames", 0))


EFFECTS: Final[Mapping[str, Callable[[PlanReader], Effect]]] = {
    **{str(code): _error_effect(code) for code in effects.REFUSALS},
    "409": lambda _fields: effects.Conflict(),
    "latency": _latency,
    "drop": _drop,
    "cut": _cut,
    "lag": _lag,
    "silence": _silence,
    "expire": lambda fields: effects.Expiry(fields.count("afterFrames", 0)),
    "compact": lambda _fields: effects.Compaction(),
    "stale": lambda fields: effects.Staleness(fields.count("behind", 1, 1)),
    "duplicate": lambda _fields: effects.Duplication(),
}
"""The functions that parse an effect, by the name of the fault."""
