"""Generates ``builtin.zip``, the built-in kinds and their schemas, from published packages.

    pip install '.[schemas]' && python -m fakeapi.kinds.generate

There are two sources, which are read as files and never imported at run time:
``kubernetes-validate`` has the JSON schema of every definition (types, descriptions, list and patch
markers), ``lightkube-models`` has the resources (plural, scope, verbs, subresources). Data that
neither has is in the tables below and in ``enums.json`` (by field, its values and their
description); both were read from a running kube-apiserver v1.37.

The archive has one member per use, so that only the required data is decompressed:

- ``kinds.json``: the kinds in the order of discovery;
- ``schemas/PACKAGE.json``: OpenAPI v3 schemas by name, without descriptions;
- ``descriptions/PACKAGE.json``: by name, the type's description and those of its fields.

The same inputs produce the same bytes.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping
from importlib.metadata import distribution
from pathlib import Path
from typing import Any, Final
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

RELEASE: Final = "v1.37.0"
ARCHIVE: Final = Path(__file__).with_name("data") / "builtin.zip"
ENUMS: Final = Path(__file__).with_name("data") / "enums.json"

GROUP_VERSIONS: Final = (
    ("", "v1"),
    ("apiregistration.k8s.io", "v1"),
    ("apps", "v1"),
    ("events.k8s.io", "v1"),
    ("authentication.k8s.io", "v1"),
    ("authorization.k8s.io", "v1"),
    ("autoscaling", "v2"),
    ("autoscaling", "v1"),
    ("batch", "v1"),
    ("certificates.k8s.io", "v1"),
    ("networking.k8s.io", "v1"),
    ("policy", "v1"),
    ("rbac.authorization.k8s.io", "v1"),
    ("storage.k8s.io", "v1"),
    ("admissionregistration.k8s.io", "v1"),
    ("apiextensions.k8s.io", "v1"),
    ("scheduling.k8s.io", "v1"),
    ("scheduling.k8s.io", "v1beta1"),
    ("scheduling.k8s.io", "v1alpha3"),
    ("coordination.k8s.io", "v1"),
    ("node.k8s.io", "v1"),
    ("discovery.k8s.io", "v1"),
    ("resource.k8s.io", "v1"),
    ("flowcontrol.apiserver.k8s.io", "v1"),
    ("storagemigration.k8s.io", "v1"),
)
"""The served versions in upstream's order of groups, the preferred version of a group first."""

SHORT_NAMES: Final = {
    "certificatesigningrequests": ("csr",),
    "componentstatuses": ("cs",),
    "configmaps": ("cm",),
    "cronjobs": ("cj",),
    "customresourcedefinitions": ("crd", "crds"),
    "daemonsets": ("ds",),
    "deployments": ("deploy",),
    "endpoints": ("ep",),
    "events": ("ev",),
    "horizontalpodautoscalers": ("hpa",),
    "ingresses": ("ing",),
    "ipaddresses": ("ip",),
    "limitranges": ("limits",),
    "namespaces": ("ns",),
    "networkpolicies": ("netpol",),
    "nodes": ("no",),
    "persistentvolumeclaims": ("pvc",),
    "persistentvolumes": ("pv",),
    "poddisruptionbudgets": ("pdb",),
    "pods": ("po",),
    "priorityclasses": ("pc",),
    "replicasets": ("rs",),
    "replicationcontrollers": ("rc",),
    "resourcequotas": ("quota",),
    "serviceaccounts": ("sa",),
    "services": ("svc",),
    "statefulsets": ("sts",),
    "storageclasses": ("sc",),
    "volumeattributesclasses": ("vac",),
}

CATEGORIES: Final = {
    "all": (
        "cronjobs",
        "daemonsets",
        "deployments",
        "horizontalpodautoscalers",
        "jobs",
        "pods",
        "replicasets",
        "replicationcontrollers",
        "services",
        "statefulsets",
    ),
    "api-extensions": (
        "apiservices",
        "customresourcedefinitions",
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
        "mutatingwebhookconfigurations",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "validatingwebhookconfigurations",
    ),
}

VERBS_OF: Final = {"componentstatuses": ("get", "list")}
"""Verbs of resources for which the source differs from the server."""

CONNECTIONS: Final[Mapping[str, Mapping[str, tuple[str, tuple[str, ...]]]]] = {
    "pods": {
        "attach": ("PodAttachOptions", ("create", "get")),
        "exec": ("PodExecOptions", ("create", "get")),
        "portforward": ("PodPortForwardOptions", ("create", "get")),
        "proxy": ("PodProxyOptions", ("create", "delete", "get", "patch", "update")),
    },
    "nodes": {"proxy": ("NodeProxyOptions", ("create", "delete", "get", "patch", "update"))},
    "services": {"proxy": ("ServiceProxyOptions", ("create", "delete", "get", "patch", "update"))},
}
"""Subresources that are connections, which the source omits."""

DEFAULTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "io.k8s.api.certificates.v1.PodCertificateRequestSpec": {"maxExpirationSeconds": 86400},
    "io.k8s.api.core.v1.AzureDiskVolumeSource": {
        "cachingMode": "ReadWrite",
        "fsType": "ext4",
        "kind": "Shared",
        "readOnly": False,
    },
    "io.k8s.api.core.v1.ContainerPort": {"protocol": "TCP"},
    "io.k8s.api.core.v1.ISCSIPersistentVolumeSource": {"iscsiInterface": "default"},
    "io.k8s.api.core.v1.ISCSIVolumeSource": {"iscsiInterface": "default"},
    "io.k8s.api.core.v1.RBDPersistentVolumeSource": {
        "keyring": "/etc/ceph/keyring",
        "pool": "rbd",
        "user": "admin",
    },
    "io.k8s.api.core.v1.RBDVolumeSource": {
        "keyring": "/etc/ceph/keyring",
        "pool": "rbd",
        "user": "admin",
    },
    "io.k8s.api.core.v1.ReplicationControllerSpec": {"replicas": 1},
    "io.k8s.api.core.v1.ScaleIOPersistentVolumeSource": {
        "fsType": "xfs",
        "storageMode": "ThinProvisioned",
    },
    "io.k8s.api.core.v1.ScaleIOVolumeSource": {
        "fsType": "xfs",
        "storageMode": "ThinProvisioned",
    },
    "io.k8s.api.core.v1.ServicePort": {"protocol": "TCP"},
    "io.k8s.api.resource.v1.DeviceToleration": {"operator": "Equal"},
}
"""Defaults that upstream declares in its schemas and the source omits."""

_COMMON_DEFINITIONS: Final = (
    "Status",
    "DeleteOptions",
    "Patch",
    "WatchEvent",
    "APIResourceList",
    "APIGroup",
)
_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
_REF: Final = "#/$defs/"
_COMPONENT: Final = "#/components/schemas/"
_VERB_NAMES: Final = {"post": "create", "put": "update"}


def main() -> None:
    """Write the archive beside this module."""
    packages = distribution("kubernetes-validate").locate_file("kubernetes_validate")
    schemas = f"kubernetes-json-schema/{RELEASE}-local/_definitions.json"
    definitions = json.loads(Path(str(packages), schemas).read_text())["$defs"]
    resources = distribution("lightkube-models").locate_file("lightkube/resources")
    kinds = list(_kinds(list(_resources(Path(str(resources)))), definitions))
    members = {"kinds.json": kinds, **_split(definitions, _reachable(definitions, kinds))}
    with ZipFile(ARCHIVE, "w", ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in members.items():
            text = json.dumps(content, separators=(",", ":"), ensure_ascii=False)
            member = ZipInfo(name)
            member.compress_type = ZIP_DEFLATED
            archive.writestr(member, text, compresslevel=9)


Resource = Mapping[str, Any]


def _resources(folder: Path) -> Iterator[Resource]:
    """Yield each resource class as data: the fields of ``ApiInfo``, and its base class's name."""
    for source in sorted(folder.glob("*.py")):
        for node in ast.parse(source.read_text()).body:
            if isinstance(node, ast.ClassDef):
                yield from _api_info(node)


def _api_info(node: ast.ClassDef) -> Iterator[Resource]:
    for statement in node.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id="_api_info")], value=ast.Call() as call):
                base = ast.unparse(node.bases[0])
                yield {"base": base, **{str(k.arg): _literal(k.value) for k in call.keywords}}


def _literal(node: ast.expr) -> Any:
    """Return the value of a literal, or the arguments of ``ResourceDef(group, version, kind)``."""
    if isinstance(node, ast.Call):
        return tuple(ast.literal_eval(argument) for argument in node.args)
    return ast.literal_eval(node)


def _kinds(resources: list[Resource], definitions: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    names = _names(definitions)
    for group, version in GROUP_VERSIONS:
        own = [r for r in resources if (r.get("parent") or r["resource"])[:2] == (group, version)]
        for main in sorted((r for r in own if "action" not in r), key=lambda r: r["plural"]):
            below = [r for r in own if "action" in r and r["plural"] == main["plural"]]
            yield _kind(main, below, names)


def _names(definitions: Mapping[str, Any]) -> dict[tuple[str, str, str], str]:
    """Index the definitions by their group, version and kind."""
    found = {}
    for name, definition in definitions.items():
        declared = definition.get("x-kubernetes-group-version-kind", ())
        if len(declared) == 1:
            one = declared[0]
            found[one["group"], one["version"], one["kind"]] = name
    return found


def _kind(
    main: Resource, below: list[Resource], names: Mapping[tuple[str, str, str], str]
) -> dict[str, Any]:
    group, version, kind = main["resource"]
    plural = main["plural"]
    subresources = {sub["action"]: [*sub["resource"], _verbs(sub)] for sub in below}
    for name, (options, verbs) in CONNECTIONS.get("" if group else plural, {}).items():
        subresources[name] = ["", "v1", options, list(verbs)]
    return {
        "group": group,
        "version": version,
        "kind": kind,
        "plural": plural,
        "namespaced": main["base"].rpartition(".")[2].startswith("Namespaced"),
        "shortNames": list(SHORT_NAMES.get(plural, ())),
        "categories": [name for name, plurals in CATEGORIES.items() if plural in plurals],
        "verbs": list(VERBS_OF.get(plural, _verbs(main))),
        "subresources": dict(sorted(subresources.items())),
        "definition": names[group, version, kind],
    }


def _verbs(resource: Resource) -> list[str]:
    verbs = (verb.removeprefix("global_") for verb in resource["verbs"])
    return sorted({_VERB_NAMES.get(verb, verb) for verb in verbs})


def _reachable(definitions: Mapping[str, Any], kinds: list[dict[str, Any]]) -> list[str]:
    """Return the names of all definitions that kinds, lists and common documents reference."""
    pending = [kind["definition"] for kind in kinds]
    pending += [f"{name}List" for name in pending if f"{name}List" in definitions]
    pending += [f"{_META}{name}" for name in _COMMON_DEFINITIONS]
    names = _names(definitions)
    for kind in kinds:
        for group, version, name, _ in kind["subresources"].values():
            pending += [names[key] for key in [(group, version, name)] if key in names]
    found: set[str] = set()
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending += _references(definitions[name])
    return sorted(found)


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"].removeprefix(_REF)
        for value in schema.values():
            yield from _references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _references(value)


def _split(definitions: Mapping[str, Any], names: list[str]) -> dict[str, Any]:
    enums: Mapping[str, tuple[list[str], str]] = json.loads(ENUMS.read_text())
    schemas: dict[str, dict[str, Any]] = {}
    texts: dict[str, dict[str, Any]] = {}
    for name in names:
        package, _, short = name.rpartition(".")
        schema, text = _openapi(definitions[name])
        for field, default in DEFAULTS.get(name, {}).items():
            schema["properties"][field]["default"] = default
        for field, property_schema in schema.get("properties", {}).items():
            text[1][field] += _enumerate(property_schema, f"{name}.{field}", enums)
        schemas.setdefault(f"schemas/{package}.json", {})[short] = schema
        texts.setdefault(f"descriptions/{package}.json", {})[short] = text
    return schemas | texts


def _enumerate(
    schema: dict[str, Any], path: str, enums: Mapping[str, tuple[list[str], str]]
) -> str:
    """Add the enum of a field, or of its elements, to its schema; return the description's text."""
    for place in ("", "items", "additionalProperties"):
        where = f"{path}:{place}" if place else path
        if where in enums:
            (schema[place] if place else schema)["enum"], text = enums[where]
            return text
    return ""


def _openapi(definition: Mapping[str, Any]) -> tuple[dict[str, Any], list[Any]]:
    """Return a definition as OpenAPI v3, and its descriptions separately."""
    schema = _plain(definition)
    properties = {name: _plain(p) for name, p in definition.get("properties", {}).items()}
    fields = {name: p.pop("description", "") for name, p in properties.items()}
    if properties:
        schema["properties"] = properties
    return schema, [schema.pop("description", ""), fields]


def _plain(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Remove the source's additions for validators: null in each type, and fixed kinds."""
    plain = {k: v for k, v in schema.items() if k not in ("enum", "properties")}
    if isinstance(plain.get("type"), list):
        plain["type"] = next(name for name in plain["type"] if name != "null")
    if "oneOf" in plain:
        plain["oneOf"] = [_plain(choice) for choice in plain["oneOf"]]
    for name in ("items", "additionalProperties"):
        if isinstance(plain.get(name), dict):
            plain[name] = _plain(plain[name])
    if "$ref" in plain:
        target = {"$ref": _COMPONENT + plain.pop("$ref").removeprefix(_REF)}
        return {**plain, "allOf": [target]} if plain else target
    return plain


if __name__ == "__main__":
    main()
