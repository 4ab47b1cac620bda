"""Resource lists: quantities by resource name, their arithmetic, and how messages print them.

A quantity keeps its format. The result of an addition has the format of the first operand, or of
the second one if the first is zero; a quantity that no operation has changed is printed as it was
decoded.

    {"cpu": "500m"} + {"cpu": "1", "memory": "1Gi"}    cpu=1500m,memory=1Gi

Documents may have been loaded without validation, so fields of the wrong type count as absent, and
so do texts that are no quantities.

Source: k8s.io/apiserver/pkg/quota/v1/resources.go, k8s.io/apimachinery/pkg/api/resource.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from policies.kubernetes.quantity import (
    NANOS,
    QuantityError,
    QuantityFormat,
    format_quantity,
    parse_quantity,
    quantity_format,
)

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ResourceQuantity:
    """An amount in nanos, its format, and its text if it was decoded and not computed."""

    nanos: int
    form: QuantityFormat = QuantityFormat.DECIMAL
    text: str = ""

    def __str__(self) -> str:
        return self.text or format_quantity(self.nanos, self.form)

    def plus(self, nanos: int, form: QuantityFormat) -> ResourceQuantity:
        """Return the sum of this and an amount."""
        return ResourceQuantity(self.nanos + nanos, self.form if self.nanos else form)


ResourceList = Mapping[str, ResourceQuantity]

NOTHING: Final[ResourceList] = {}
ZERO: Final = ResourceQuantity(0)
ONE: Final = ResourceQuantity(NANOS)


def count(number: int) -> ResourceQuantity:
    """Return a number of objects as a quantity."""
    return ResourceQuantity(number * NANOS)


def section(document: Any, *path: str) -> Object:
    """Return the object at a path; {} if there is none."""
    for step in path:
        document = document.get(step) if isinstance(document, Mapping) else None
    return document if isinstance(document, Mapping) else {}


def objects_at(document: Object, name: str) -> Iterator[Object]:
    """Yield the objects of a list."""
    listed = document.get(name)
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, Mapping):
            yield each


def read_resource_list(amounts: Object) -> ResourceList:
    """Return the quantities of a document's resource list."""
    return {
        name: found
        for name, text in amounts.items()
        if (found := _read_quantity(str(text))) is not None
    }


def _read_quantity(text: str) -> ResourceQuantity | None:
    try:
        return ResourceQuantity(parse_quantity(text), quantity_format(text), text)
    except QuantityError:
        return None


def total(*lists: ResourceList) -> ResourceList:
    """Return the sum of resource lists."""
    result: dict[str, ResourceQuantity] = {}
    for each in lists:
        for name, amount in each.items():
            present = result.get(name)
            result[name] = amount if present is None else present.plus(amount.nanos, amount.form)
    return result


def increase(new: ResourceList, old: ResourceList) -> ResourceList:
    """Return by how much each amount exceeds the old one; 0 if it does not."""
    result: dict[str, ResourceQuantity] = {}
    for name in dict.fromkeys((*new, *old)):
        before = old.get(name, ZERO)
        difference = new.get(name, ZERO).plus(-before.nanos, before.form)
        result[name] = difference if difference.nanos > 0 else ZERO
    return result


def largest(*lists: ResourceList) -> ResourceList:
    """Return the largest amount of each resource."""
    result: dict[str, ResourceQuantity] = {}
    for each in lists:
        for name, amount in each.items():
            present = result.get(name)
            if present is None or amount.nanos > present.nanos:
                result[name] = amount
    return result


def only(amounts: ResourceList, names: Iterable[str]) -> ResourceList:
    """Return the amounts of some names."""
    kept = set(names)
    return {name: amount for name, amount in amounts.items() if name in kept}


def equal(one: ResourceList, other: ResourceList) -> bool:
    """Return whether two lists have the same amounts, in whatever format."""
    return {n: a.nanos for n, a in one.items()} == {n: a.nanos for n, a in other.items()}


def written(amounts: ResourceList) -> dict[str, str]:
    """Return a resource list as a document has it."""
    return {name: str(amount) for name, amount in sorted(amounts.items())}


def printed(amounts: ResourceList) -> str:
    """Return a resource list as messages print it: ``cpu=1,pods=2``."""
    return ",".join(f"{name}={amount}" for name, amount in sorted(amounts.items()))
