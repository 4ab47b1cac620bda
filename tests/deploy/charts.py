"""The chart and the kustomize directories as objects, and the files generated from the chart.

    python -m tests.deploy.charts

generates them again: the part of ``values.schema.json`` that repeats our configuration and
policies, and everything below ``deploy/kustomize`` except the kustomizations.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import msgspec
import yaml

from extender.config.component_config import Config
from extender.config.policy_file import PolicyFile
from policies.kubernetes.releases import RELEASES
from policies.kubernetes.selectors import NODE_OPERATORS
from policies.preemption.policy import POLICIES
from tests.builders import Document
from tests.e2e.clients import programs

DEPLOY: Final = Path(__file__).parents[2] / "deploy"
CHART: Final = DEPLOY / "helm" / "reprieve"
KUSTOMIZE: Final = DEPLOY / "kustomize"
SCHEMA: Final = CHART / "values.schema.json"
RELEASE: Final = "reprieve"
NAMESPACE: Final = "kube-system"

ISSUER: Final = {"tls": {"mode": "cert-manager", "certManager": {"issuerRef": {"name": "ca"}}}}
MONITORED: Final = {
    "monitoring": {
        part: {"create": True} for part in ("serviceMonitor", "prometheusRule", "dashboard")
    }
}

_HELMS: Final = ("app.kubernetes.io/managed-by", "helm.sh/chart")
_SAID_ELSEWHERE: Final = ("tls", "allowPlainHTTP", "ledger", "page", "shadow")

# Names that types do not restrict, and ``check-config`` looks up.
_RELEASES: Final = "|".join(map(re.escape, RELEASES))
_POLICIES: Final = "|".join(POLICIES)
_NAMES: Final[Sequence[tuple[str, str, Document]]] = (
    ("Config", "upstream", {"pattern": rf"^v?({_RELEASES})(\..*)?$"}),
    ("Config", "policy", {"pattern": rf"^(/.*|{_POLICIES})$"}),
    ("_NodeSelectorRequirement", "operator", {"enum": list(NODE_OPERATORS)}),
)
_COMPONENTS: Final[Mapping[str, tuple[Document, Sequence[str]]]] = {
    "cert-manager": (ISSUER, ("Certificate",)),
    "monitoring": (MONITORED, ("ServiceMonitor", "PrometheusRule")),
}


class RefusedError(Exception):
    """helm refused values; the text is its message."""


def rendered(values: Mapping[str, Any] | None = None, release: str = RELEASE) -> list[Document]:
    """Render the chart without a server. Raises RefusedError."""
    documents: list[Document] = json.loads(_rendered(json.dumps(values or {}), release))
    return documents


@cache
def _rendered(values: str, release: str) -> str:
    """Render with values in JSON; cached, since helm is slow."""
    with TemporaryDirectory(prefix="values-") as home:
        file = Path(home) / "values.json"
        file.write_text(values)
        command = [programs("1.37")["helm"], "template", release, CHART, "-n", NAMESPACE]
        done = subprocess.run(
            [*map(str, command), "-f", str(file)],
            env={"HOME": home, "PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise RefusedError(done.stderr)
    return json.dumps([document for document in yaml.safe_load_all(done.stdout) if document])


def kustomized(directory: str) -> list[Document]:
    """Return the output of kustomize for a directory below deploy/kustomize."""
    command = [programs("1.37")["kubectl"], "kustomize", KUSTOMIZE / directory]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True)
    return [document for document in yaml.safe_load_all(done.stdout) if document]


def only(kind: str, documents: Sequence[Document]) -> Document:
    """Return the only object of a kind."""
    [found] = [each for each in documents if each["kind"] == kind]
    return found


def without_helm(document: Document) -> Document:
    """Return an object without the fields that only helm writes, or only kustomize.

    Both change with the configuration: helm's checksum, and the name of kustomize's ConfigMap.
    """
    read: Document = deepcopy(document)
    labels = read["metadata"].get("labels", {})
    for label in _HELMS:
        labels.pop(label, None)
    if read["kind"] == "Deployment":
        template = read["spec"]["template"]
        template["metadata"].get("annotations", {}).pop("checksum/config", None)
        if not template["metadata"].get("annotations", True):
            del template["metadata"]["annotations"]
        [config] = [each for each in template["spec"]["volumes"] if each["name"] == "config"]
        config["configMap"]["name"] = RELEASE
    if read["kind"] == "ConfigMap" and read["metadata"]["name"].startswith(f"{RELEASE}-"):
        suffix = read["metadata"]["name"].removeprefix(f"{RELEASE}-")
        read["metadata"]["name"] = f"{RELEASE}-{suffix}" if suffix == "dashboard" else RELEASE
    return read


def schema() -> Document:
    """Return the schema of values with the current ones of Config and PolicyFile."""
    read: Document = json.loads(SCHEMA.read_text())
    _, parts = msgspec.json.schema_components(
        [Config, PolicyFile], schema_hook=_anything, ref_template="#/$defs/{name}"
    )
    for key in _SAID_ELSEWHERE:
        del parts["Config"]["properties"][key]
    del parts["TlsConfig"]
    for part, field, names in _NAMES:
        parts[part]["properties"][field] |= names
    return {**read, "$defs": json.loads(json.dumps(parts))}


def _anything(_: type) -> Document:
    """Accept any arguments of plugins and selectors; ``check-config`` validates them."""
    return {"description": "as kube-scheduler's configuration has it"}


def files() -> Iterator[tuple[Path, str]]:
    """Return the files generated from the chart and from Config, with their text."""
    yield SCHEMA, json.dumps(schema(), indent=2) + "\n"
    plain = rendered()
    config = only("ConfigMap", plain)
    yield KUSTOMIZE / "base" / "reprieve.yaml", config["data"]["reprieve.yaml"]
    for document in plain:
        if document["kind"] != "ConfigMap":
            yield _file("base", document), _text(document)
    for component, (values, kinds) in _COMPONENTS.items():
        for document in rendered(values):
            if document["kind"] in kinds:
                yield _file(f"components/{component}", document), _text(document)
    dashboard = CHART / "files" / "reprieve.json"
    yield KUSTOMIZE / "components" / "monitoring" / "reprieve.json", dashboard.read_text()


def _file(directory: str, document: Document) -> Path:
    return KUSTOMIZE / directory / f"{document['kind'].lower()}.yaml"


def _text(document: Document) -> str:
    return yaml.safe_dump(without_helm(document), sort_keys=False, width=10_000)


def main() -> None:
    """Write the files."""
    for path, text in files():
        path.write_text(text)


if __name__ == "__main__":
    main()
