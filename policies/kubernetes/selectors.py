"""Label selectors, node selectors and tolerations, compiled once and matched many times.

Three families share one :class:`Requirement`:

- *label selectors* (``matchLabels`` and ``matchExpressions``, all ANDed): a selector that is absent
  matches nothing, an empty one matches everything;
- *node selectors* (terms ORed, requirements within a term ANDed, an empty term matches no node);
- *tolerations* against taints.

Queries, and the scale of a workload, have label selectors in text form (labels.Parse): a list of
requirements separated by commas, all of which must hold:

    app=web  app==web  app!=web  env in (prod,qa)  env notin (dev)  gpu  !gpu  size>3  size<9

Sources: k8s.io/apimachinery/pkg/labels (selector.go), apis/meta/v1 (LabelSelectorAsSelector),
k8s.io/component-helpers/scheduling/corev1/nodeaffinity, k8s.io/api/core/v1 (toleration.go).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from policies.kubernetes.integers import parse_integer

Labels = Mapping[str, str]

_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", re.ASCII)
_PREFIX = re.compile(
    r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*", re.ASCII
)
_CANONICAL = re.compile(r"0|-?[1-9][0-9]*", re.ASCII)

_TOKEN = re.compile(r"\s*(==|!=|[!=<>(),]|[^\s!=<>(),]+)\s*")
_SYMBOLS = frozenset(("==", "!=", "!", "=", "<", ">", "(", ")", ","))
_COMPARISONS = {"=": "In", "==": "In", "!=": "NotIn", ">": "Gt", "<": "Lt"}
_SETS = {"in": "In", "notin": "NotIn"}

LABEL_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
NODE_OPERATORS = (*LABEL_OPERATORS, "Gt", "Lt")


class SelectorError(ValueError):
    """A selector is invalid; the message contains the invalid part and what was expected."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One requirement on one label: ``key operator values``.

    ``Gt`` and ``Lt`` compare integers; a label that is absent or no integer does not match.
    """

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Labels) -> bool:
        """Return whether ``labels`` meet this requirement."""
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value in self.values
            case "NotIn":
                return value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
        number = None if value is None else parse_integer(value)
        bound = parse_integer(self.values[0])
        if number is None or bound is None:
            return False
        return number > bound if self.operator == "Gt" else number < bound


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """Requirements that must all hold; without any, the selector matches every object."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Labels) -> bool:
        """Return whether ``labels`` meet every requirement."""
        return all(requirement.matches(labels) for requirement in self.requirements)


@dataclass(frozen=True, slots=True)
class NodeSelectorTerm:
    """The requirements of a term on a node's labels and, with ``metadata.name``, on its name."""

    labels: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()

    def matches(self, name: str, labels: Labels) -> bool:
        """Return whether a node with this name and ``labels`` matches; an empty term never does."""
        if not self.labels and not self.fields:
            return False
        fields = {"metadata.name": name}
        return all(r.matches(labels) for r in self.labels) and all(
            _field_matches(r, fields) for r in self.fields
        )

    def named(self) -> frozenset[str] | None:
        """Return the only node names that can match, or None if this term names none."""
        named = [
            set(r.values) for r in self.fields if r.key == "metadata.name" and r.operator == "In"
        ]
        return frozenset(set.intersection(*named)) if named else None


@dataclass(frozen=True, slots=True)
class NodeSelector:
    """Terms of which one must match; without terms, no node matches."""

    terms: tuple[NodeSelectorTerm, ...] = ()

    def matches(self, name: str, labels: Labels) -> bool:
        """Return whether a node with this name and ``labels`` matches some term."""
        return any(term.matches(name, labels) for term in self.terms)

    def named(self) -> frozenset[str] | None:
        """Return the only node names that can match, or None if some term names none.

        An empty set means that every term contradicts itself.
        """
        names = [term.named() for term in self.terms]
        if not names or any(named is None for named in names):
            return None
        return frozenset().union(*(named for named in names if named is not None))


@dataclass(frozen=True, slots=True)
class Taint:
    """A taint of a node; pods that do not tolerate it are kept away."""

    key: str
    value: str
    effect: str

    @property
    def forbids_scheduling(self) -> bool:
        """Whether the taint keeps new pods away (PreferNoSchedule only discourages)."""
        return self.effect in ("NoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True)
class Toleration:
    """A toleration of taints; an empty key or effect matches any."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: Taint) -> bool:
        """Return whether this toleration matches ``taint``.

        ``Gt`` and ``Lt`` compare the taint's value with that of the toleration, both as int64 in
        canonical form; any other value does not match.
        """
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        if self.operator == "Exists":
            return True
        if self.compares:
            return self._compare(taint.value)
        return self.operator in ("", "Equal") and self.value == taint.value

    @property
    def compares(self) -> bool:
        """Whether the operator is numeric."""
        return self.operator in ("Gt", "Lt")

    def _compare(self, value: str) -> bool:
        if not _CANONICAL.fullmatch(value) or not _CANONICAL.fullmatch(self.value):
            return False
        number, bound = parse_integer(value), parse_integer(self.value)
        if number is None or bound is None:
            return False
        return number > bound if self.operator == "Gt" else number < bound


def untolerated(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> Taint | None:
    """Return the first taint that forbids scheduling and that no toleration matches."""
    for taint in taints:
        if taint.forbids_scheduling and not any(t.tolerates(taint) for t in tolerations):
            return taint
    return None


def label_requirement(key: str, operator: str, values: Sequence[str]) -> Requirement:
    """Compile one expression of a label selector. Raise SelectorError if it is invalid."""
    if operator not in LABEL_OPERATORS:
        raise SelectorError(f"{operator!r} is not a valid label selector operator")
    return _requirement(key, operator, values)


def node_requirement(key: str, operator: str, values: Sequence[str]) -> Requirement:
    """Compile one ``matchExpressions`` entry of a node selector term, or raise SelectorError."""
    if operator not in NODE_OPERATORS:
        raise SelectorError(f"{operator!r} is not a valid node selector operator")
    return _requirement(key, operator, values)


def field_requirement(key: str, operator: str, values: Sequence[str]) -> Requirement:
    """Compile one ``matchFields`` entry of a node selector term, or raise SelectorError."""
    if operator not in ("In", "NotIn"):
        raise SelectorError(f"{operator!r} is not a valid field selector operator")
    if len(values) != 1:
        raise SelectorError(f"matchFields {key!r}: values must have one element")
    return Requirement(key, operator, tuple(values))


def equals_all(labels: Labels) -> tuple[Requirement, ...]:
    """Compile a plain map such as ``nodeSelector``, which upstream does not validate."""
    return tuple(Requirement(key, "In", (labels[key],)) for key in sorted(labels))


def _requirement(key: str, operator: str, values: Sequence[str]) -> Requirement:
    _check_key(key)
    if operator in ("In", "NotIn") and not values:
        raise SelectorError(f"{key!r}: for 'in', 'notin' operators, values set can't be empty")
    if operator in ("Exists", "DoesNotExist") and values:
        raise SelectorError(f"{key!r}: values set must be empty for exists and does not exist")
    if operator in ("Gt", "Lt") and (len(values) != 1 or parse_integer(values[0]) is None):
        raise SelectorError(f"{key!r}: for 'Gt', 'Lt' operators, exactly one integer is required")
    for value in values:
        if not _VALUE.fullmatch(value):
            raise SelectorError(f"{key!r}: {value!r} is not a valid label value")
    return Requirement(key, operator, tuple(values))


def _check_key(key: str) -> None:
    prefix, slash, name = key.rpartition("/")
    if not _NAME.fullmatch(name) or (
        slash and (len(prefix) > 253 or not _PREFIX.fullmatch(prefix))
    ):
        raise SelectorError(f"{key!r} is not a valid label key")


def _field_matches(requirement: Requirement, fields: Labels) -> bool:
    # Unlike label sets, field sets return "" for a missing field.
    same = fields.get(requirement.key, "") == requirement.values[0]
    return same if requirement.operator == "In" else not same


def parse_label_selector(text: str) -> LabelSelector:
    """Compile a label selector; an empty one matches everything. Raise SelectorError if invalid."""
    return LabelSelector(SelectorParser(text).requirements())


class SelectorParser:
    """Reads requirements from left to right, one token at a time."""

    def __init__(self, text: str) -> None:
        self._tokens = _TOKEN.findall(text)
        self._next = 0

    def requirements(self) -> tuple[Requirement, ...]:
        """Return all requirements; raise SelectorError if the text is invalid."""
        found: list[Requirement] = []
        while self._peek():
            found.append(self._requirement())
            if self._peek() == ",":
                self._take()
                if not self._peek():
                    raise SelectorError("found '', expected: identifier after ','")
            elif self._peek():
                raise SelectorError(f"found '{self._peek()}', expected: ',' or 'end of string'")
        return tuple(found)

    def _requirement(self) -> Requirement:
        if self._peek() == "!":
            self._take()
            return node_requirement(self._word(), "DoesNotExist", ())
        key = self._word()
        if self._peek() in ("", ","):
            return node_requirement(key, "Exists", ())
        operator = self._take()
        if operator in _COMPARISONS:
            return node_requirement(key, _COMPARISONS[operator], (self._value(),))
        if operator in _SETS:
            return node_requirement(key, _SETS[operator], self._values())
        raise SelectorError(f"found '{operator}', expected: in, notin, =, ==, !=, gt, lt")

    def _values(self) -> tuple[str, ...]:
        if self._take() != "(":
            raise SelectorError("expected: '(' after in or notin")
        values = [self._value()]
        while self._peek() == ",":
            self._take()
            values.append(self._value())
        if self._take() != ")":
            raise SelectorError("expected: ',' or ')' in a set of values")
        return tuple(values)

    def _value(self) -> str:
        return "" if self._peek() in ("", ",", ")") else self._word()

    def _word(self) -> str:
        token = self._take()
        if not token or token in _SYMBOLS:
            raise SelectorError(f"found '{token}', expected: identifier")
        return token

    def _peek(self) -> str:
        return self._tokens[self._next] if self._next < len(self._tokens) else ""

    def _take(self) -> str:
        token = self._peek()
        self._next += 1
        return token


@dataclass(frozen=True, slots=True)
class SpreadConstraint:
    """A hard spread constraint: no domain may exceed the smallest by more than ``max_skew``.

    Domains are the values of the node label ``topology_key``. ``selector`` selects the pods that
    count (None: none). With fewer than ``min_domains`` domains the smallest count is taken as 0.
    ``honors_affinity`` leaves out nodes that the pod's node affinity does not match,
    ``honors_taints`` nodes with taints that the pod does not tolerate.
    """

    max_skew: int
    topology_key: str
    selector: LabelSelector | None
    min_domains: int = 1
    honors_affinity: bool = True
    honors_taints: bool = False
