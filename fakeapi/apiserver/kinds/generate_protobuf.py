"""Generates ``wire.json.xz``, the protobuf fields of the built-in kinds, from their Go types.

Run it by hand when the server follows a new Kubernetes release:

    python -m fakeapi.kinds.generate_wire "$(go env GOMODCACHE)/k8s.io" v0.37.0

The struct tag of every field of a Kubernetes type has its field number and its JSON name:

    Replicas *int32 `json:"replicas,omitempty" protobuf:"varint,1,opt,name=replicas"`

For the format of the table see :mod:`fakeapi.apiserver.kinds.protobuf_fields`.
"""

from __future__ import annotations

import json
import lzma
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from fakeapi.apiserver.kinds.protobuf_fields import FILE_NAME

_IMPORT = re.compile(r'^\s*(\w+)?\s*"k8s\.io/(?:api|apimachinery/pkg/apis)/([\w/]+)"', re.MULTILINE)
_TYPE = re.compile(r"^type (\w+) =? ?(struct \{\n.*?^\}|[^\n]+)", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^\t(?:(\w+) +)?([\w.*\[\]]+) +`([^`]+)`", re.MULTILINE)
_TAG = re.compile(r'(json|protobuf):"([^"]*)"')
_MAP = re.compile(r"map\[[\w.]+\](.+)")

_SCALARS = {
    "string": "s",
    "bool": "o",
    "int": "i",
    "int32": "i",
    "int64": "i",
    "uint8": "i",
    "float64": "d",
}
_SPECIAL = {
    "meta/v1.Time": "time",
    "meta/v1.MicroTime": "microtime",
    "meta/v1.Duration": "duration",
    "meta/v1.FieldsV1": "raw",
    "resource.Quantity": "quantity",
    "intstr.IntOrString": "int-or-string",
    "runtime.RawExtension": "raw",
    "runtime.Object": "raw",
    "apiextensions/v1.JSON": "raw",
    "apiextensions/v1.JSONSchemaPropsOrBool": "schema-or-bool",
    "apiextensions/v1.JSONSchemaPropsOrArray": "schema-or-list",
    "apiextensions/v1.JSONSchemaPropsOrStringArray": "schema-or-names",
}

_NAMES = ("UID", "NodeName", "NamespacedName")
_SERVED = re.compile(r"[a-z]+/v\d+|scheduling/(v1beta1|v1alpha3)|meta/v1beta1|apidiscovery/v2beta1")

Row = list[str | int]


@dataclass(frozen=True)
class GoPackage:
    """One Go package: the declarations of its types, and the paths of its imports by name."""

    name: str
    types: Mapping[str, str]
    imports: Mapping[str, str]


def read_packages(cache: Path, version: str) -> Iterator[GoPackage]:
    """Read every package with API types; ``cache`` is the folder of the Go modules."""
    roots = (
        (f"api@{version}", "*/v*/"),
        (f"apimachinery@{version}/pkg/apis", "meta/v*/"),
        (f"apiextensions-apiserver@{version}/pkg/apis", "*/v1/"),
        (f"kube-aggregator@{version}/pkg/apis", "*/v1/"),
    )
    for module, pattern in roots:
        root = cache / module
        for folder in sorted(root.glob(pattern)):
            sources = [
                path.read_text() for path in sorted(folder.glob("*.go")) if _is_handwritten(path)
            ]
            yield _package(folder.relative_to(root).as_posix(), "\n".join(sources))


def _is_handwritten(path: Path) -> bool:
    return not path.name.startswith(("generated", "zz_")) and not path.name.endswith("_test.go")


def _package(name: str, source: str) -> GoPackage:
    imports = {alias or path.rsplit("/", 1)[1]: path for alias, path in _IMPORT.findall(source)}
    return GoPackage(name, dict(_TYPE.findall(source)), imports)


class ProtobufTableGenerator:
    """Converts Go types to rows of the table."""

    def __init__(self, packages: Mapping[str, GoPackage]) -> None:
        self._packages = packages

    def messages(self) -> dict[str, list[Row]]:
        """Return the fields of every struct of a served version, and of the nested structs."""
        served = [package for package in self._packages.values() if _SERVED.fullmatch(package.name)]
        pending = [
            f"{package.name}.{name}"
            for package in served
            for name, declaration in package.types.items()
            if declaration.startswith("struct")
        ]
        found: dict[str, list[Row]] = {}
        while pending:
            qualified = pending.pop()
            where, _, name = qualified.rpartition(".")
            if qualified not in found and qualified not in _SPECIAL:
                package = self._packages[where]
                found[qualified] = list(self._rows(package, package.types[name]))
                pending += [str(row[3]) for row in found[qualified] if row[3]]
        return found

    def _rows(self, package: GoPackage, declaration: str) -> Iterator[Row]:
        if not declaration.startswith("struct"):
            return
        for go_name, go_type, tag in _FIELD.findall(declaration):
            tags = dict(_TAG.findall(tag))
            if tags.get("protobuf", "-") == "-":
                continue
            json_name, *options = tags.get("json", go_name).split(",")
            nullable = go_type.startswith(("*", "[]", "map["))
            omits = "omitempty" in options and not nullable
            code, reference = self._code(package, go_type.lstrip("*"))
            number = int(tags["protobuf"].split(",")[1])
            yield [number, json_name, code, reference, int(omits)]

    def _code(self, package: GoPackage, go_type: str) -> tuple[str, str]:
        go_type = go_type.lstrip("*")
        if go_type == "[]byte":
            return "b", ""
        if go_type.startswith("[]"):
            code, reference = self._code(package, go_type[2:])
            return f"[{code}", reference
        if match := _MAP.fullmatch(go_type):
            code, reference = self._code(package, match[1])
            return "{" + code, reference
        if go_type in _SCALARS:
            return _SCALARS[go_type], ""
        return self._named(package, go_type)

    def _named(self, package: GoPackage, go_type: str) -> tuple[str, str]:
        alias, _, name = go_type.rpartition(".")
        where = package.imports.get(alias, alias) if alias else package.name
        qualified = f"{where}.{name}"
        if alias.endswith("types") and name in _NAMES:
            return "s", ""
        if qualified in _SPECIAL:
            return _SPECIAL[qualified], ""
        owner = self._packages.get(where)
        if owner is None or name not in owner.types:
            raise SystemExit(f"{package.name}: unknown type {go_type}")
        declaration = owner.types[name].strip()
        if declaration.startswith("struct"):
            return "m", qualified
        code, reference = self._code(owner, declaration)
        return ("items", "") if code == "[s" else (code, reference)


def main() -> None:
    """Write the table beside this module."""
    cache, version = Path(sys.argv[1]), sys.argv[2]
    packages = {package.name: package for package in read_packages(cache, version)}
    text = json.dumps(
        ProtobufTableGenerator(packages).messages(), separators=(",", ":"), sort_keys=True
    )
    (Path(__file__).with_name("data") / FILE_NAME).write_bytes(
        lzma.compress(text.encode(), preset=9)
    )


if __name__ == "__main__":
    main()
