"""Random definitions of custom resources: odd schemas, patterns, formats and rules."""

from __future__ import annotations

from random import Random
from typing import Any, Final

from tests.builders.definitions import ANYTHING, definition, version
from tests.fuzz.mutation import NUMBERS, TEXTS, pick, random_value

TYPES: Final = ("string", "integer", "number", "boolean", "object", "array", "", "null")
FORMATS: Final = (
    "bsonobjectid",
    "byte",
    "cidr",
    "creditcard",
    "date",
    "date-time",
    "datetime",
    "duration",
    "email",
    "hexcolor",
    "hostname",
    "int32",
    "int64",
    "float",
    "double",
    "ipv4",
    "ipv6",
    "isbn",
    "isbn10",
    "isbn13",
    "k8s-long-name",
    "k8s-short-name",
    "mac",
    "password",
    "rgbcolor",
    "ssn",
    "uri",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
    "binary",
    "none",
)
_SAMPLES: Final = (
    "^(a+)+$",
    r"\pL+",
    "[",
    "a{1000}",
    "(?i)x",
    "1h30m",
    "127.0.0.1/8",
    "rgb(1,2,3)",
    "978-0321751041",
    "http://a/b?c=d",
    "aGk=",
    "v1.2.3-rc.1",
)
_FUNCTIONS: Final = (
    "size",
    "matches",
    "find",
    "findAll",
    "split",
    "join",
    "replace",
    "trim",
    "lowerAscii",
    "substring",
    "indexOf",
    "lastIndexOf",
    "charAt",
    "format",
    "quantity",
    "isQuantity",
    "asInteger",
    "asApproximateFloat",
    "sign",
    "add",
    "sub",
    "compareTo",
    "url",
    "isURL",
    "getHost",
    "getPort",
    "getQuery",
    "ip",
    "isIP",
    "cidr",
    "isCIDR",
    "masked",
    "containsIP",
    "prefixLength",
    "semver",
    "isSemver",
    "major",
    "sum",
    "min",
    "max",
    "isSorted",
    "includes",
    "int",
    "uint",
    "double",
    "string",
    "bytes",
    "timestamp",
    "duration",
    "getFullYear",
    "getHours",
    "orValue",
    "hasValue",
    "validate",
    "lists.range",
    "math.bitShiftLeft",
    "math.greatest",
    "sets.contains",
    "base64.decode",
    "reverse",
    "flatten",
    "slice",
    "optional.of",
    "type",
    "dyn",
)
_OPERATORS: Final = (
    "==",
    "!=",
    "<",
    ">=",
    "&&",
    "||",
    "+",
    "-",
    "*",
    "/",
    "%",
    "in",
    "?",
    ".",
    ".?",
)
_ATOMS: Final = (
    "self",
    "oldSelf",
    "self.spec",
    "self.metadata.name",
    "self[0]",
    "self.?a",
    "true",
    "null",
    "[]",
    "{}",
    "[1, 2, 3]",
    "{'a': 1}",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615u",
    "1e308",
    "b'\\xff'",
    "r'\\d'",
    "'a' + 'b'",
    "x",
)


def random_expression(rng: Random, depth: int = 0) -> str:
    """Return a text that resembles CEL, and often is."""
    draw = rng.random()
    if depth > 4 or draw < 0.3:
        return pick(rng, _ATOMS)
    if draw < 0.4:
        return repr(pick(rng, (*_SAMPLES, *TEXTS[:14])))
    inside = random_expression(rng, depth + 1)
    other = random_expression(rng, depth + 1)
    if draw < 0.6:
        return f"{inside} {pick(rng, _OPERATORS)} {other}"
    if draw < 0.75:
        return f"({inside}).{pick(rng, _FUNCTIONS)}({other})"
    if draw < 0.85:
        return f"{pick(rng, _FUNCTIONS)}({inside})"
    if draw < 0.95:
        macro = pick(rng, ("all", "exists", "exists_one", "map", "filter"))
        return f"({inside}).{macro}(x, {other})"
    return pick(
        rng, ("(" * 200, "!" * 5_000 + "true", inside + " ? 1", "a" * 3_000, "'''" + inside)
    )


def random_schema(rng: Random, depth: int = 0) -> Any:
    """Return a random schema, most often one that is accepted."""
    kind = pick(rng, TYPES[:6]) if rng.random() < 0.97 else pick(rng, TYPES)
    schema: dict[str, Any] = {"type": kind}
    if kind == "object" and depth < 3:
        names = ("a", "b", "a-b", "metadata", "apiVersion", "x.y", "")
        schema["properties"] = {
            pick(rng, names): random_schema(rng, depth + 1) for _ in range(rng.randrange(1, 4))
        }
        if rng.random() < 0.1:
            schema = {"type": kind, "additionalProperties": random_schema(rng, depth + 1)}
    if kind == "array" and depth < 4:
        schema["items"] = random_schema(rng, depth + 1)
        if rng.random() < 0.4:
            schema["x-kubernetes-list-type"] = pick(rng, ("set", "map", "atomic", "x"))
            schema["x-kubernetes-list-map-keys"] = ["a"]
    if kind == "string":
        schema["format"] = pick(rng, FORMATS)
        schema["pattern"] = pick(rng, (*_SAMPLES[:5], *TEXTS))
    if depth < 3 and rng.random() < 0.2:
        quantifier = pick(rng, ("anyOf", "allOf", "oneOf"))
        schema[quantifier] = [random_schema(rng, depth + 2), random_schema(rng, depth + 2)]
    if depth < 3 and rng.random() < 0.05:
        schema["not"] = random_schema(rng, depth + 2)
    for _ in range(rng.randrange(3)):
        name, value = _keyword(rng)
        schema[name] = value
    return schema


def _keyword(rng: Random) -> tuple[str, Any]:
    rules = [
        {
            "rule": random_expression(rng),
            "message": pick(rng, ("m", *TEXTS)),
            "messageExpression": random_expression(rng),
            "fieldPath": pick(rng, (".a", ".spec.a", ".a['b']", *TEXTS[:10])),
            "reason": "FieldValueInvalid",
        }
    ]
    counts = ("maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties")
    numbers = ("maximum", "minimum", "multipleOf")
    return pick(
        rng,
        (
            ("x-kubernetes-validations", rules),
            ("x-kubernetes-validations", [{"rule": random_expression(rng)}]),
            (pick(rng, counts), pick(rng, NUMBERS)),
            (pick(rng, numbers), pick(rng, NUMBERS)),
            ("default", random_value(rng)),
            ("enum", [random_value(rng) for _ in range(3)]),
            ("nullable", True),
            ("uniqueItems", True),
            ("x-kubernetes-int-or-string", True),
            ("x-kubernetes-preserve-unknown-fields", True),
            ("x-kubernetes-embedded-resource", True),
            ("required", ["a", ""]),
            (pick(rng, ("$ref", "patternProperties", "title", "example")), random_value(rng)),
        ),
    )


def random_definition(rng: Random) -> Any:
    """Return a definition of widgets, whose ``spec`` has a random schema."""
    spec = random_schema(rng, 1)
    schema: dict[str, Any] = {"type": "object", "properties": {"spec": spec, "status": ANYTHING}}
    if rng.random() < 0.3:
        schema["x-kubernetes-validations"] = [{"rule": random_expression(rng)}]
    columns: list[Any] = [
        {"name": "c", "type": "string", "jsonPath": pick(rng, (".spec.a", *TEXTS))}
    ]
    columns.append({"name": "d", "type": "date", "jsonPath": pick(rng, (".spec", ".spec[*]"))})
    subresources: dict[str, Any] = {"status": {}}
    if rng.random() < 0.3:
        subresources["scale"] = {
            "specReplicasPath": ".spec.a",
            "statusReplicasPath": ".status.a",
            "labelSelectorPath": pick(rng, (".status.b", *TEXTS[:5])),
        }
    fields: dict[str, Any] = {"additionalPrinterColumns": columns, "subresources": subresources}
    if rng.random() < 0.2:
        fields["selectableFields"] = [{"jsonPath": pick(rng, (".spec.a", *TEXTS))}]
    return definition(versions=[version("v1", schema, **fields)])


def random_custom_value(rng: Random, schema: Any, depth: int = 0) -> Any:
    """Return a value that often fits a schema."""
    if not isinstance(schema, dict) or rng.random() < 0.1 or depth > 6:
        return random_value(rng)
    kind = schema.get("type")
    if kind == "object":
        properties = schema.get("properties") or {"k": schema.get("additionalProperties")}
        return {
            name: random_custom_value(rng, below, depth + 1) for name, below in properties.items()
        }
    if kind == "array":
        return [random_custom_value(rng, schema.get("items"), depth + 1) for _ in range(2)]
    if kind == "string":
        return pick(rng, (*_SAMPLES, *TEXTS))
    return pick(rng, NUMBERS) if kind in ("integer", "number") else pick(rng, (True, None, "x"))
