"""The functions of CEL as kube-apiserver declares them, with the types of their overloads.

Each line has names and the overloads that they share: ``(int) string`` is a function, and
``string.(int) string`` a method. A capital letter is any type.

Sources: github.com/google/cel-go/common/stdlib/standard.go, ext; k8s.io/apiserver/pkg/cel/library,
in the environment of k8s.io/apiserver/pkg/cel/environment/base.go, v1.37.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from extender.cel.cel_types import (
    DYN,
    SIMPLE,
    CelType,
    free,
    list_of,
    map_of,
    optional_of,
    type_of,
)


@dataclass(frozen=True, slots=True)
class Overload:
    """The types of one overload; the receiver of a method is the first parameter."""

    parameters: tuple[CelType, ...]
    result: CelType
    is_method: bool


@lru_cache(maxsize=1)
def function_declarations() -> Mapping[str, Sequence[Overload]]:
    """Return the overloads of all functions and operators by name."""
    found: dict[str, Sequence[Overload]] = {}
    for line in _TABLE.replace("\n    ", " ").splitlines():
        names, _, overloads = line.partition(": ")
        found |= dict.fromkeys(names.split(), tuple(map(_overload, overloads.split("; "))))
    for name in ("_<_", "_<=_", "_>_", "_>=_"):
        found[name] = tuple(_overload(f"({one}, {two}) bool") for one, two in _COMPARABLE)
    for name, result in _OF_ORDERED.items():
        found[name] = tuple(_overload(result.format(each)) for each in _ORDERED)
    return found


def _overload(text: str) -> Overload:
    words = _Reader(text)
    receiver = () if text[0] == "(" else (words.type(),)
    parameters = words.types()
    return Overload((*receiver, *parameters), words.type(), bool(receiver))


class _Reader:
    """Reads types from the text of an overload."""

    def __init__(self, text: str) -> None:
        self._words = _WORD.findall(text)

    def type(self) -> CelType:
        name = self._words.pop(0)
        if name in _CONTAINERS:
            return _CONTAINERS[name](*self.types())
        if len(name) == 1:
            return free(name)
        return SIMPLE.get(name) or _NAMED.get(name) or CelType("message", _message_name(name))

    def types(self) -> list[CelType]:
        """Return the types between brackets."""
        found, _ = list[CelType](), self._words.pop(0)
        while self._words[0] != ")":
            found.append(self.type())
        self._words.pop(0)
        return found


_WORD: Final = re.compile(r"\w+|[()]")
_CONTAINERS: Final[Mapping[str, Callable[..., CelType]]] = {
    "list": list_of,
    "map": map_of,
    "optional": optional_of,
    "type": type_of,
}
_NAMED: Final = {
    "dyn": DYN,
    "CIDR": CelType("opaque", "net.CIDR"),
    "IP": CelType("opaque", "net.IP"),
}
_OF_AUTHORIZER: Final = ("Authorizer", "Decision", "GroupCheck", "PathCheck", "ResourceCheck")


def _message_name(name: str) -> str:
    if name in _OF_AUTHORIZER:
        return f"kubernetes.authorization.{name}"
    return f"kubernetes.{'NamedFormat' if name == 'Format' else name}"


AUTHORIZER: Final = CelType("message", _message_name("Authorizer"))
RESOURCE_CHECK: Final = CelType("message", _message_name("ResourceCheck"))

_ORDERED: Final = (
    "int",
    "uint",
    "double",
    "bool",
    "duration",
    "timestamp",
    "string",
    "bytes",
)
_NUMBERS: Final = ("int", "uint", "double")
_COMPARABLE: Final = (
    *((one, two) for one in _NUMBERS for two in _NUMBERS),
    *((each, each) for each in _ORDERED if each not in _NUMBERS),
)
_OF_ORDERED: Final = {
    "isSorted": "list({0}).() bool",
    "max": "list({0}).() {0}",
    "min": "list({0}).() {0}",
    "sort": "list({0}).() list({0})",
    "@sortByAssociatedKeys": "list(T).(list({0})) list(T)",
}

_TABLE: Final = """\
!_ @not_strictly_false: (bool) bool
-_: (double) double; (int) int
@in: (A, list(A)) bool; (A, map(A, B)) bool
_!=_ _==_: (A, A) bool
_%_: (int, int) int; (uint, uint) uint
_&&_ _||_: (bool, bool) bool
_*_ _/_: (double, double) double; (int, int) int; (uint, uint) uint
_+_: (bytes, bytes) bytes; (double, double) double; (duration, duration) duration; (duration,
    timestamp) timestamp; (timestamp, duration) timestamp; (int, int) int; (list(A), list(A))
    list(A); (string, string) string; (uint, uint) uint
_-_: (double, double) double; (duration, duration) duration; (int, int) int; (timestamp, duration)
    timestamp; (timestamp, timestamp) duration; (uint, uint) uint
_?._: (dyn, string) optional(V)
_?_:_: (bool, A, A) A
_[?_]: (list(V), int) optional(V); (optional(list(V)), int) optional(V); (map(K, V), K)
    optional(V); (optional(map(K, V)), K) optional(V)
_[_]: (list(A), int) A; (map(A, B), A) B; (optional(list(V)), int) optional(V);
    (optional(map(K, V)), K) optional(V)
add sub: Quantity.(Quantity) Quantity; Quantity.(int) Quantity
allowed errored: Decision.() bool
asApproximateFloat: Quantity.() double
asInteger: Quantity.() int
bool: (bool) bool; (string) bool
bytes: (bytes) bytes; (string) bytes
cel.@mapInsert: (map(K, V), K, V) map(K, V); (map(K, V), map(K, V)) map(K, V)
charAt: string.(int) string
check: PathCheck.(string) Decision; ResourceCheck.(string) Decision
cidr: (string) CIDR
compareTo: Quantity.(Quantity) int; Semver.(Semver) int
contains endsWith startsWith: string.(string) bool
containsCIDR: CIDR.(string) bool; CIDR.(CIDR) bool
containsIP: CIDR.(string) bool; CIDR.(IP) bool
distinct reverse: list(T).() list(T)
double: (double) double; (int) double; (string) double; (uint) double
duration: (duration) duration; (string) duration
dyn: (A) dyn
error reason: Decision.() string
family: IP.() int
fieldSelector labelSelector name namespace subresource: ResourceCheck.(string) ResourceCheck
find: string.(string) string
findAll split: string.(string) list(string); string.(string, int) list(string)
first last: list(V).() optional(V)
flatten: list(list(T)).() list(T); list(dyn).(int) list(dyn)
format: string.(list(dyn)) string
format.byte format.date format.datetime format.dns1035Label format.dns1035LabelPrefix
    format.dns1123Label format.dns1123LabelPrefix format.dns1123Subdomain
    format.dns1123SubdomainPrefix format.labelValue format.qualifiedName format.uri format.uuid:
    () Format
format.named: (string) optional(Format)
getDate getDayOfMonth getDayOfWeek getDayOfYear getFullYear getMonth: timestamp.() int;
    timestamp.(string) int
getEscapedPath getHost getHostname getPort getScheme: URL.() string
getHours getMilliseconds getMinutes getSeconds: timestamp.() int; timestamp.(string) int;
    duration.() int
getQuery: URL.() map(string, list(string))
group: Authorizer.(string) GroupCheck
hasValue: optional(V).() bool
includes: dyn.(dyn) bool
indexOf lastIndexOf: string.(string) int; string.(string, int) int; list(A).(A) int
int: (int) int; (double) int; (duration) int; (string) int; (timestamp) int; (uint) int
ip: (string) IP; CIDR.() IP
ip.isCanonical isCIDR isIP isQuantity isURL: (string) bool
isGlobalUnicast isLinkLocalMulticast isLinkLocalUnicast isLoopback isUnspecified: IP.() bool
isGreaterThan isLessThan: Quantity.(Quantity) bool; Semver.(Semver) bool
isInteger: Quantity.() bool
isSemver: (string) bool; (string, bool) bool
join: list(string).() string; list(string).(string) string
jsonpatch.escapeKey: (string) string
lists.range: (int) list(int)
lowerAscii trim upperAscii: string.() string
major minor patch: Semver.() int
masked: CIDR.() CIDR
matches: (string, string) bool; string.(string) bool
optional.none: () optional(V)
optional.of optional.ofNonZeroValue: (V) optional(V)
optional.unwrap: (list(optional(V))) list(V)
or: optional(V).(optional(V)) optional(V)
orValue: optional(V).(V) V
path: Authorizer.(string) PathCheck
prefixLength: CIDR.() int
quantity: (string) Quantity
replace: string.(string, string) string; string.(string, string, int) string
resource: GroupCheck.(string) ResourceCheck
semver: (string) Semver; (string, bool) Semver
serviceAccount: Authorizer.(string, string) Authorizer
sets.contains sets.equivalent sets.intersects: (list(T), list(T)) bool
sign: (Quantity) int
size: (bytes) int; bytes.() int; (list(A)) int; list(A).() int; (map(A, B)) int; map(A, B).() int;
    (string) int; string.() int
slice: list(T).(int, int) list(T)
string: (string) string; (bool) string; (bytes) string; (double) string; (duration) string; (int)
    string; (timestamp) string; (uint) string; (IP) string; (CIDR) string
strings.quote: (string) string
substring: string.(int) string; string.(int, int) string
sum: list(int).() int; list(uint).() uint; list(double).() double; list(duration).() duration
timestamp: (timestamp) timestamp; (int) timestamp; (string) timestamp
type: (A) type(A)
uint: (uint) uint; (double) uint; (int) uint; (string) uint
unwrapOpt: list(optional(V)).() list(V)
url: (string) URL
validate: Format.(string) optional(list(string))
value: optional(V).() V
"""
