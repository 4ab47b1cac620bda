"""The arguments of the tools, decoded strictly, and their JSON Schemas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal, TypeVar

import msgspec

from extender.kube.decoders.typed_decoder import with_field_path
from extender.ledger.time_bound import TIME_BOUND, read_time_bound
from extender.mcp.results import Json
from policies.kubernetes.input_error import InputError

A = TypeVar("A", bound=msgspec.Struct)

MOST_LISTED: Final = 100
_KEY: Final = r"^[^/\s]+/[^/\s]+$"
_LONGEST_KEY: Final = 317
"""A namespace has at most 63 characters, and the name of a pod 253."""
_LONGEST_TEXT: Final = 262_144

PodKey = Annotated[
    str,
    msgspec.Meta(
        pattern=_KEY,
        max_length=_LONGEST_KEY,
        description="The pod as NAMESPACE/NAME, for example default/web-1.",
    ),
]
PolicyText = Annotated[
    str,
    msgspec.Meta(
        max_length=_LONGEST_TEXT,
        description=(
            "The policy of the decision: the name of a built-in policy, such as kube-scheduler, or "
            "a whole PreemptionPolicy document as YAML or JSON. Default: the policy of the server."
        ),
    ),
]
NameText = Annotated[str, msgspec.Meta(max_length=253)]


class InvalidArgumentsError(InputError):
    """The arguments of a call are invalid; the text names the argument."""


class WhyArguments(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The arguments of ``why``."""

    pod: PodKey
    uid: Annotated[
        str,
        msgspec.Meta(
            max_length=253,
            description="The UID of the pod, if several pods had its name. Default: all of them.",
        ),
    ] = ""


class ListArguments(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The arguments of ``list``."""

    since: Annotated[
        str,
        msgspec.Meta(
            max_length=64,
            description=f"Only decisions from then on: {TIME_BOUND}. Default: the beginning.",
        ),
    ] = ""
    until: Annotated[
        str,
        msgspec.Meta(
            max_length=64, description=f"Only decisions before: {TIME_BOUND}. Default: now."
        ),
    ] = ""
    namespace: Annotated[
        NameText,
        msgspec.Meta(description="The namespace of the preemptor or of a victim. Default: any."),
    ] = ""
    priority_class: Annotated[
        NameText,
        msgspec.Meta(description="The PriorityClass of the preemptor or a victim. Default: any."),
    ] = msgspec.field(default="", name="class")
    kind: Annotated[
        Literal["preemptions", "all"],
        msgspec.Meta(description="preemptions: decisions that name victims; all: every decision."),
    ] = "preemptions"
    limit: Annotated[
        int, msgspec.Meta(ge=1, le=MOST_LISTED, description="The most decisions to return.")
    ] = 20
    before: Annotated[
        str,
        msgspec.Meta(
            pattern="^([0-7][0-9a-f]{15})?$",
            description="The cursor of the next page: the value before of the previous result.",
        ),
    ] = ""


class ExplainArguments(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The arguments of ``explain``."""

    pod: PodKey
    policy: PolicyText = ""


class SimulateArguments(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The arguments of ``simulate``."""

    pod_manifest: Annotated[
        str,
        msgspec.Meta(
            min_length=1,
            max_length=_LONGEST_TEXT,
            description=(
                "A Pod, or a Deployment, Job or other workload whose pod template is used, as YAML "
                "or JSON. It is not created."
            ),
        ),
    ]
    policy: PolicyText = ""
    changes: Annotated[
        str,
        msgspec.Meta(
            max_length=_LONGEST_TEXT,
            description=(
                "Objects that the decision assumes besides those of the cluster, as YAML or JSON: "
                "for example another Node or PodDisruptionBudget. An object of the same kind, "
                "namespace and name replaces that of the cluster. Nothing is written."
            ),
        ),
    ] = ""


def input_schema(kind: type[msgspec.Struct]) -> dict[str, Json]:
    """Return the JSON Schema of the arguments of a tool."""
    _, components = msgspec.json.schema_components([kind])
    schema: dict[str, Json] = {**components[kind.__name__]}
    del schema["title"], schema["description"]
    return schema


def decode_arguments(kind: type[A], arguments: Mapping[str, object]) -> A:
    """Return the arguments of a call. Raise InvalidArgumentsError."""
    try:
        return msgspec.convert(arguments, kind)
    except msgspec.ValidationError as error:
        allowed = ", ".join(kind.__struct_encode_fields__)
        problem = with_field_path(str(error))
        raise InvalidArgumentsError(f"arguments: {problem}; expected of {allowed}") from None


def time_argument(text: str, argument: str, now_ns: int) -> int:
    """Return a time in nanoseconds since the epoch. Raise InvalidArgumentsError."""
    found = read_time_bound(text)
    if found is None:
        raise InvalidArgumentsError(f"arguments: {argument}: {text!r}; expected {TIME_BOUND}")
    return found.resolve(now_ns)
