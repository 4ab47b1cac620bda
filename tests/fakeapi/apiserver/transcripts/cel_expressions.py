"""CEL expressions that are written: those of definitions, policies and webhooks.

All requests are dry runs, so expressions without errors leave nothing behind. The errors that a
kube-apiserver answers are in ``tests/transcripts/cel/KIND.json``.
``python -m tests.fakeapi.apiserver.transcripts.record_expressions URL TOKEN`` asks a real server
again (1.37.0, last time).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tests.builders.definitions import (
    ANYTHING,
    DEFINITIONS,
    INTEGER,
    TEXT,
    definition,
    record,
    version,
)
from tests.fakeapi.apiserver.transcripts.admission_expressions import (
    OF_ADMISSION,
    OF_CONFIGURATIONS,
    OF_PATCHES,
)
from tests.fakeapi.apiserver.transcripts.steps import MUTATING_POLICIES, Step, post

Case = tuple[str, Step]

_SELF_TYPE = re.compile(r"\bselfType\d+")
_VALUE = re.compile(
    r"^Invalid value: .*?(?=(messageExpression )?compilation failed|(cel|message)\s?[eE]xpr|must )",
    re.DOTALL,
)
_ADMISSION = "/apis/admissionregistration.k8s.io/v1"
POLICIES = f"{_ADMISSION}/validatingadmissionpolicies"
HOOKS = f"{_ADMISSION}/validatingwebhookconfigurations"
_PODS = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}

ANYWHERE = (
    "1 == 'a'",
    "1 + 'a' == 2",
    "1 + 1.0 > 2",
    "1 < 1.5 && 2u > 1",
    "!1",
    "-'a' == 'b'",
    "1 && true",
    "true || 'a'",
    "true ? 1 : 'a'",
    "'a' ? true : false",
    "1 in ['a']",
    "1 in {'a': 1}",
    "[1, 'a'].size() == 2",
    "{'a': 1, 'b': 'c'}.size() == 2",
    "{'a': 1, 2: 3}.size() == 2",
    "[][0] == 1",
    "{}.a == 1",
    "[1][true] == 1",
    "{'a': 1}[1] == 1",
    "'a'.b == 'c'",
    "nobody",
    "nobody.home && nowhere",
    "nothing(1)",
    "'a'.nothing()",
    "a.b.c(1)",
    "size(1) == 1",
    "'a'.size() == '1'",
    "'abc'.startsWith(1)",
    "'abc'.contains('a', 'b')",
    "int(true) == 1",
    "string([1]) == 'a'",
    "type(1) == int",
    "type(1) == 'int'",
    "type(timestamp('2024-01-01T00:00:00Z')) == google.protobuf.Timestamp",
    "dyn(1) == 'a'",
    "null == 1",
    "null == 'a' || null == timestamp('2024-01-01T00:00:00Z')",
    "[1, 2].all(x, x > 'a')",
    "[1, 2].all(x, x)",
    "[1, 2].all('x', true)",
    "[1, 2].exists(x, x.y == 1)",
    "[1, 2].exists_one(x, 'a')",
    "[1, 2].map(x, x + 'a').size() == 2",
    "[1, 2].map(x, x > 1, string(x)) == [2]",
    "[1, 2].map(1, 2) == []",
    "[1, 2].filter(x, x) == []",
    "1.all(x, true)",
    "'abc'.exists(c, c == 'a')",
    "{'a': 1}.all(k, k == 1)",
    "[1, 2].all(i, v, v == 'a')",
    "[1, 2].all(i, i, true)",
    "[1, 2].exists(i, v, i == 'a')",
    "[1, 2].existsOne(i, v, v == 1)",
    "{'a': 1}.all(k, v, k == v)",
    "{'a': 1}.transformList(k, v, k + v) == []",
    "{'a': 1}.transformMap(k, v, v > 1, string(v)) == {'a': 1}",
    "{'a': 1}.transformMapEntry(k, v, {v: k}) == {'a': 'b'}",
    "[1].transformMapEntry(i, v, v) == {}",
    "cel.bind(x, 1, x == 1)",
    "has(1)",
    "has('a'.b)",
    "has({'a': 1}.a)",
    "has([1].a)",
    "{'a': 1}.?a == 1",
    "{'a': 1}.?a.orValue('b') == 1",
    "{'a': 1}[?'a'].hasValue()",
    "{'a': 1}[?1].hasValue()",
    "[1][?0].orValue(2) == 1",
    "[?1] == [1]",
    "[?optional.of(1)] == [1]",
    "{?'a': 1} == {'a': 1}",
    "optional.of(1).or(optional.of('a')).hasValue()",
    "optional.none() == optional.of(1)",
    "optional.of(1).optMap(x, x + 'a').hasValue()",
    "optional.of(1).optFlatMap(x, x).hasValue()",
    "optional.of(1).value() == 'a'",
    "optional.of({'a': 1}).a.orValue('b') == 'c'",
    "duration('1d') > duration('1h')",
    "timestamp('yesterday') > timestamp('2024-01-01T00:00:00Z')",
    "timestamp('2024-01-01T00:00:00Z') - duration('1h') == duration('1h')",
    "duration('1h') + 1 == duration('1h')",
    "timestamp('2024-01-01T00:00:00Z').getHours('UTC') == 'a'",
    "'a'.matches('(')",
    "'a'.matches('(?=a)')",
    "matches('a', 'a')",
    "'a'.find(1) == ''",
    "'a'.findAll('a', 'b') == ['a']",
    "['a', 1].isSorted()",
    "[1, 2].isSorted() && [[1]].isSorted()",
    "['a'].sum() == 'a'",
    "[true].max() == 1",
    "[{}].min() == {}",
    "[1].indexOf('a') == 0",
    "[1].lastIndexOf(1) == 0 && 'a'.lastIndexOf(1) == 0",
    "[1].first().orValue('a') == 1",
    "[[1]].flatten() == ['a']",
    "[1, 2].slice('a', 2) == [1]",
    "[1, 2].sort() == ['a']",
    "[[1]].sort() == [[1]]",
    "[1, 2].sortBy(x, -x) == ['a']",
    "[1, 2].sortBy(x, [x]) == [1]",
    "[1].distinct() == [1] && [1].reverse() == 1",
    "lists.range('a') == []",
    "sets.contains([1], ['a'])",
    "sets.intersects([1], [1]) == 1",
    "'a'.charAt('b') == 'a'",
    "'a,b'.split(',') == 'a'",
    "['a'].join(1) == 'a'",
    "[1].join() == 'a'",
    "'%d'.format(1) == '1'",
    "'%d %s'.format([1, 2]) == '1'",
    "'a'.replace('a', 1) == 'b'",
    "'a'.lowerAscii().trim().upperAscii() == 1",
    "strings.quote(1) == 'a'",
    "url('https://a/').getHost() == 1",
    "isURL(1)",
    "'https://a/'.getHost() == 'a'",
    "quantity('1') == 1",
    "quantity('1').add(1.5) == quantity('1')",
    "quantity('1') < quantity('2')",
    "quantity('1').isLessThan('2')",
    "quantity('1').value == 1",
    "sign(quantity('1')) == 'a'",
    "ip('1.2.3.4') == '1.2.3.4'",
    "ip('1.2.3.4').family() == '4'",
    "ip.isCanonical(1)",
    "type(ip('1.2.3.4')) == net.IP",
    "cidr('1.2.3.0/24').containsIP(1)",
    "cidr('1.2.3.0/24').ip() == cidr('1.2.3.0/24')",
    "string(ip('1.2.3.4')) == 1",
    "semver('1.0.0').major() == '1'",
    "semver('1.0.0', 'a') == semver('1.0.0')",
    "semver('1.0.0').isLessThan(quantity('1'))",
    "format.dns1123Label().validate(1).hasValue()",
    "format.named('a').validate('b').hasValue()",
    "format.nothing().validate('b').hasValue()",
    "authorizer.path('/a').check('get').allowed() == 1",
    "authorizer.group('').check('get').allowed()",
    "authorizer.requestResource.check('get') == true",
    "authorizer.group('').resource('pods').namespace('a').name(1).check('get').allowed()",
    "Nobody{a: 1} == 1",
    "9223372036854775808 == 1",
    "-9223372036854775808 == '1'",
    "0x1F == 'a'",
    "18446744073709551616u == 1u",
    "1.5e3 == 'a'",
    "b'a' == 'a'",
    "r'\\d' == 1 && \"\\n\" == 2",
    "'''a''' == 1",
    "if == 1",
    "1 ==",
    "(1",
    "'é世' == 1 && '世' == 2",
    "  1 == 'a'",
    "1 == 1 &&\n\t1 == 'a' ||\n2 == 'b'",
    "!!true && --1 == 'a'",
    "1 - 1 -1 == '-1'",
    "true ? (true ? 1 : 2) : 'a'",
    "[1, 2, 3].all(x, [1, 'a'].exists(y, x == y)) && [] == ['a'] && {} == {'a': 1}",
    "{'a-b': 1}.`a-b` == 1",
    ".type(1) == int",
)

OF_SELF = (
    "self.size > 'a'",
    "self.sise > 1",
    "self.size.more > 1",
    "self.size",
    "self == 1",
    "self == oldSelf && self.name",
    "self.name.size() > 3 && self.name.matches(1)",
    "self.ports.all(p, p.name == 1)",
    "self.ports.all(p, p.nme == 'a')",
    "self.ports[0].name > self.ports[0].port",
    "self.ports == [1]",
    "self.ports[0] == 1",
    "self.labels.a == 1",
    "self.labels['a'] == 1 || 1 in self.labels",
    "self.labels.all(k, v, k > v && v > 1)",
    "self.open.a == 1",
    "self.free == 1",
    "self.either == 1 || self.either == 'a'",
    "self.when > '2024-01-01T00:00:00Z'",
    "self.age == 1",
    "self.age > duration('1h') && self.day.getFullYear() == '2024'",
    "self.bytes == 'a'",
    "self.ratio == 1",
    "self.ratio < 1 && self.ratio + 1 < 2.0",
    "self.on == 'true'",
    "self.__namespace__ == 1",
    "self.a__dash__b == 1 && self.namespace == 'a'",
    "has(self.sise)",
    "has(self.inner.deep) && self.inner.deep == 'a'",
    "self.?size.orValue('a') == 1",
    "self.?sise.hasValue()",
    "self.inner.?deep.optMap(d, d + 'a').hasValue()",
    "self.embedded.metadata.name == 1 && self.embedded.spec == 2",
    "self.embedded.metadata.labels == {}",
    "self.inner == self.ports[0]",
    "oldSelf.size > 1 && oldSelf.size == 'a'",
    "self.things.all(t, t.a.all(b, b == 1))",
    "self.maps.all(m, self.maps[m].all(n, n == 1))",
    "object.a == 1",
    "[self.size] == self.name",
    "self.size == null || self.inner == null",
)


def _definitions() -> Iterator[Case]:
    for expression in (*ANYWHERE, *OF_SELF):
        yield expression, _ruled({"rule": expression})
    for worded in ("self.name + 1", "self.size", "'a' + self.name", "self.sise", "1 +", "'a'.b"):
        yield worded, _ruled({"rule": "self.size > 1", "messageExpression": worded})
    for worded in ("self.size > 'a'", "true"):
        yield worded, _ruled({"rule": worded, "messageExpression": "self.sise"})
    for rule in ("oldSelf.size > 1", "oldSelf.hasValue() && oldSelf.value().size == 'a'", "true"):
        yield rule, _ruled({"rule": rule, "optionalOldSelf": True})


def _policies() -> Iterator[Case]:
    for expression in (*ANYWHERE, *OF_ADMISSION):
        yield expression, _policy({"validations": [{"expression": expression}]})
    every = {"expression": "object.a == 1"}
    for used in OF_ADMISSION:
        yield used, _policy({}, {**every, "messageExpression": used})
        yield used, _policy({"matchConditions": [{"name": "a", "expression": used}]}, every)
        yield used, _policy({"auditAnnotations": [{"key": "a", "valueExpression": used}]})
    for variable in ("1", "'a'", "object.a", "[1]", "{'a': [1]}", "quantity('1')", "nobody", "1u"):
        declared = {"variables": [{"name": "a", "expression": variable}]}
        for used in ("variables.a == true", "variables.b == 1", "variables.a[0].b"):
            yield f"{variable}; {used}", _policy(declared, {"expression": used})
    chained = [
        {"name": "b", "expression": "variables.a + 1"},
        {"name": "a", "expression": "'a'"},
        {"name": "c", "expression": "variables.a + 1"},
    ]
    yield "variables", _policy({"variables": chained}, every)
    kind = {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}
    yield "params", _policy(kind, {"expression": "params.a + 1 == 'a'"})


def _mutations() -> Iterator[Case]:
    for expression in (*OF_CONFIGURATIONS, *OF_PATCHES):
        for type_name, field in (
            ("ApplyConfiguration", "applyConfiguration"),
            ("JSONPatch", "jsonPatch"),
        ):
            mutation = {"patchType": type_name, field: {"expression": expression}}
            variables = [{"name": "labels", "expression": "{'a': 'b'}"}]
            spec = {
                "matchConstraints": {"resourceRules": [_PODS]},
                "mutations": [mutation],
                "reinvocationPolicy": "Never",
                "variables": variables,
            }
            body = {"metadata": {"name": "a"}, "spec": spec}
            yield expression, post(MUTATING_POLICIES, body, dryRun="All")


def _webhooks() -> Iterator[Case]:
    for expression in (*ANYWHERE, *OF_ADMISSION):
        condition = {"name": "a", "expression": expression}
        hook = {
            "name": "a.example.com",
            "clientConfig": {"url": "https://a.example.com/"},
            "rules": [_PODS],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "matchConditions": [condition],
        }
        yield expression, post(HOOKS, {"metadata": {"name": "a"}, "webhooks": [hook]}, dryRun="All")


_NAME: dict[str, Any] = {**TEXT, "maxLength": 20}
_INNER = record(deep=INTEGER)
_SPEC = record(
    size=INTEGER,
    name=_NAME,
    ports={"type": "array", "items": record(name=_NAME, port=INTEGER), "maxItems": 5},
    labels={"type": "object", "additionalProperties": _NAME, "maxProperties": 5},
    open=ANYTHING,
    free={"x-kubernetes-preserve-unknown-fields": True},
    either={"x-kubernetes-int-or-string": True},
    when={**TEXT, "format": "date-time"},
    age={**TEXT, "format": "duration"},
    day={**TEXT, "format": "date"},
    bytes={**TEXT, "format": "byte", "maxLength": 20},
    ratio={"type": "number"},
    on={"type": "boolean"},
    namespace=_NAME,
    inner=_INNER,
    embedded={**ANYTHING, "x-kubernetes-embedded-resource": True},
    things={
        "type": "array",
        "maxItems": 3,
        "items": record(a={"type": "array", "maxItems": 3, "items": _NAME}),
    },
    maps={
        "type": "object",
        "maxProperties": 3,
        "additionalProperties": {"type": "array", "maxItems": 3, "items": _NAME},
    },
    **{"a-b": _NAME},
)


def _ruled(rule: dict[str, Any]) -> Step:
    ruled = {**_SPEC, "x-kubernetes-validations": [rule]}
    versions = [version(schema=record(spec=ruled))]
    return post(DEFINITIONS, definition(versions=versions), dryRun="All")


def _policy(spec: dict[str, Any], *validations: dict[str, str]) -> Step:
    rules = {"matchConstraints": {"resourceRules": [_PODS]}}
    spec = {**rules, **({"validations": [*validations]} if validations else {}), **spec}
    return post(POLICIES, {"metadata": {"name": "a"}, "spec": spec}, dryRun="All")


KINDS = {
    "definitions": _definitions,
    "mutations": _mutations,
    "policies": _policies,
    "webhooks": _webhooks,
}
"""The requests for each kind of object."""


def errors_of(answer: dict[str, Any]) -> list[str]:
    """Return the errors in an answer, without the value that they repeat."""
    causes = answer.get("details", {}).get("causes", [])
    found = [f"{cause['field']}: {_text(cause['message'])}" for cause in causes]
    return found or ([answer["message"]] if answer.get("kind") == "Status" else [])


def _text(message: str) -> str:
    """Return an error from its description on, with a fixed name for the type of ``self``."""
    described = _VALUE.sub("Invalid value: ", message)
    return _SELF_TYPE.sub("selfType", described)
