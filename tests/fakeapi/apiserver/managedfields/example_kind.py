"""A kind with a field of each type: scalar, map, set, keyed and atomic list, struct, anything."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from fakeapi.apiserver.kinds import ResourceInfo
from fakeapi.apiserver.kinds.structural_types import (
    UNTYPED,
    Field,
    ListType,
    MapType,
    Scalar,
    Struct,
    Type,
)
from tests.builders import manifest

TEXT = Scalar("string")
NUMBER = Scalar("integer")


def struct(**fields: Type) -> Struct:
    return Struct({name: Field(shape) for name, shape in fields.items()})


ITEM = struct(name=TEXT, protocol=TEXT, image=TEXT, tags=MapType(TEXT))
SPEC = struct(
    size=NUMBER,
    tags=MapType(TEXT),
    names=ListType(TEXT, "set"),
    items=ListType(ITEM, "map", ("name", "protocol"), defaults={"protocol": "TCP"}),
    order=ListType(TEXT),
    one=Struct({"a": Field(TEXT), "b": Field(TEXT)}, atomic=True),
    inner=struct(a=TEXT, b=TEXT),
    free=UNTYPED,
)
META = struct(name=TEXT, labels=MapType(TEXT), annotations=MapType(TEXT), managedFields=UNTYPED)
DOCUMENT = struct(apiVersion=TEXT, kind=TEXT, metadata=META, spec=SPEC)

THINGS = ResourceInfo(
    "", "v1", "Thing", "things", "thing", namespaced=True, structure=lambda: DOCUMENT
)

words = st.sampled_from(("a", "b", "c"))
maps = st.dictionaries(words, words, min_size=1, max_size=3)
items = st.fixed_dictionaries(
    {"name": words}, optional={"protocol": st.just("UDP"), "image": words, "tags": maps}
)
specs = st.fixed_dictionaries(
    {},
    optional={
        "size": st.integers(0, 2),
        "tags": maps,
        "names": st.lists(words, unique=True, min_size=1),
        "items": st.lists(
            items, min_size=1, max_size=3, unique_by=lambda i: (i["name"], i.get("protocol"))
        ),
        "order": st.lists(words, max_size=2),
        "one": st.fixed_dictionaries({"a": words}, optional={"b": words}),
        "inner": st.fixed_dictionaries({"a": words}, optional={"b": words}),
        "free": st.recursive(
            words, lambda below: st.dictionaries(words, below, min_size=1) | st.lists(below)
        ),
    },
)


def thing(spec: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    own: dict[str, Any] = {"spec": spec} if spec else {}
    return manifest("Thing", "x", namespace="", metadata=metadata, **own)
