"""Generates ``bootstrap_policy.json.xz``, the roles and bindings that kube-apiserver creates.

Run it by hand when the server follows a new Kubernetes release:

    python -m fakeapi.apiserver.auth.generate_bootstrap_policy FOLDER

FOLDER is the Go module k8s.io/kubernetes. kube-apiserver's own tests keep its bootstrap
policy as YAML files, one List each.
"""

from __future__ import annotations

import lzma
import sys
from pathlib import Path

import orjson
import yaml

from fakeapi.apiserver.auth.bootstrap_policy import FILE

_FOLDER = "plugin/pkg/auth/authorizer/rbac/bootstrappolicy/testdata"
_FILES = (
    "cluster-roles",
    "cluster-role-bindings",
    "controller-roles",
    "controller-role-bindings",
    "namespace-roles",
    "namespace-role-bindings",
)


def main(module: Path) -> None:
    """Write the file from the source of k8s.io/kubernetes."""
    texts = [(module / _FOLDER / f"{name}.yaml").read_text() for name in _FILES]
    objects = [item for text in texts for item in yaml.safe_load(text)["items"]]
    for item in objects:
        item["metadata"].pop("creationTimestamp", None)
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_bytes(lzma.compress(orjson.dumps(objects, option=orjson.OPT_SORT_KEYS), preset=9))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
