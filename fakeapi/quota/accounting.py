"""The rules of a quota: what a write adds to its usage, and what its usage is after a recount.

    quota: hard pods=2, used pods=1     create a pod        used pods=2
                                        create another      exceeded quota

A write is checked against ``status.hard``, so a quota is in force once it has been counted for the
first time. It must fit every quota that counts it; only resources that it uses more of are checked.

Source: k8s.io/apiserver/pkg/admission/plugin/resourcequota/controller.go (CheckRequest),
pkg/quota/v1/resources.go (CalculateUsage), v1.37.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fakeapi.quota.evaluators import Evaluator, counted_resources, evaluator_of
from fakeapi.quota.resource_list import (
    ZERO,
    Object,
    ResourceList,
    equal,
    increase,
    only,
    printed,
    read_resource_list,
    section,
    total,
    written,
)
from fakeapi.quota.scopes import scope_requirements


class QuotaExceededError(Exception):
    """A write does not fit a quota; the text is upstream's."""


@dataclass(frozen=True, slots=True)
class QuotaWrite:
    """A create (``old`` is None) or an update of an object or a subresource, at a time.

    ``now`` is in seconds since the epoch.
    """

    evaluator: Evaluator
    subresource: str
    object: Object
    old: Object | None
    now: int


def is_charged(write: QuotaWrite) -> bool:
    """Return whether a write of its kind may change the usage of a quota."""
    if write.old is None:
        return not write.subresource
    return write.evaluator.on_update(write.subresource, write.object, write.old)


def is_counted(quota: Object, write: QuotaWrite) -> bool:
    """Return whether a quota counts an object that is written.

    Raise QuotaExceededError if it cannot: the object does not specify what is counted, or the quota
    has no usage yet.
    """
    names = [n for n in section(quota, "status", "hard") if write.evaluator.affects(n)]
    if not names or not matches(quota, write.evaluator, write.object):
        return False
    name = section(quota, "metadata").get("name", "")
    if missing := write.evaluator.missing(write.object, names):
        raise QuotaExceededError(f"failed quota: {name}: {missing}")
    if not section(quota, "status", "used").keys() >= set(names):
        unknown = ",".join(sorted(names))
        raise QuotaExceededError(f"status unknown for quota: {name}, resources: {unknown}")
    return True


def new_usage(quota: Object, write: QuotaWrite) -> ResourceList | None:
    """Return the usage of a quota that counts an object after a write; None if it is the same.

    Raise QuotaExceededError if the write does not fit.
    """
    name = section(quota, "metadata").get("name", "")
    hard = read_resource_list(section(quota, "status", "hard"))
    used = read_resource_list(section(quota, "status", "used"))
    added = only(_added_usage(quota, write), hard)
    if not added:
        return None
    after = total(used, added)
    exceeded = [each for each in added if after[each].nanos > hard[each].nanos]
    if exceeded and write.subresource != "status":
        parts = (printed(only(each, exceeded)) for each in (added, used, hard))
        requested, before, limited = parts
        raise QuotaExceededError(
            f"exceeded quota: {name}, requested: {requested}, used: {before}, limited: {limited}"
        )
    return after


def matches(quota: Object, evaluator: Evaluator, item: Object) -> bool:
    """Return whether an object is in all scopes of a quota."""
    return all(evaluator.in_scope(required, item) for required in scope_requirements(quota))


def _added_usage(quota: Object, write: QuotaWrite) -> ResourceList:
    usage = write.evaluator.usage(write.object, write.now)
    if write.old is not None and matches(quota, write.evaluator, write.old):
        usage = increase(usage, write.evaluator.usage(write.old, write.now))
    return {name: amount for name, amount in usage.items() if amount.nanos}


def tracked_resources(quota: Object) -> tuple[str, ...]:
    """Return the resources whose objects a quota counts."""
    hard = section(quota, "spec", "hard")
    return tuple(dict.fromkeys(each for name in sorted(hard) for each in counted_resources(name)))


def recount(quota: Object, resource: str, objects: Iterable[Object], now: int) -> ResourceList:
    """Return what the objects of a resource charge to a quota, of the names that they affect."""
    evaluator = evaluator_of(resource)
    if evaluator is None:
        return {}
    names = [name for name in section(quota, "spec", "hard") if evaluator.affects(name)]
    counted = (each for each in objects if matches(quota, evaluator, each))
    used = total(*(evaluator.usage(each, now) for each in counted))
    return {name: used.get(name, ZERO) for name in names}


def recounted_status(quota: Object, usage: ResourceList) -> Object | None:
    """Return the status of a quota after a recount; None if the quota has it already.

    Names that could not be counted keep their usage.
    """
    hard = read_resource_list(section(quota, "spec", "hard"))
    before = read_resource_list(section(quota, "status", "used"))
    used = only({**before, **usage}, hard)
    status = section(quota, "status")
    current = read_resource_list(section(status, "hard"))
    known = "hard" in status and "used" in status
    if known and equal(current, hard) and equal(before, used):
        return None
    return {"hard": section(quota, "spec", "hard"), "used": written(used)}
