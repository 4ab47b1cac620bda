"""Pin a release of Kubernetes: ``python -m tests.conformance.pin v1.37.0`` writes ``go.mod`` anew.

``python -m tests.conformance.pin v1.30.14 releases/go-1.30.mod`` does the same for that release.

``k8s.io/kubernetes`` asks for its staging repositories at v0.0.0 and replaces them by folders that
only its own checkout has. A module that imports it has to name the release: v0.X.Y for v1.X.Y.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import orjson

from tests.conformance.build import MODULE, find_go

KUBERNETES: Final = "k8s.io/kubernetes"
_RELEASE: Final = re.compile(r"v1\.(\d+\.\d+)")
_STAGING: Final = "./staging/"


def pin(release: str, name: str = "go.mod") -> None:
    """Write ``name``, and the sums beside it, for a release as the module proxy has it."""
    wanted = _go("mod", "download", f"{KUBERNETES}@{release}")
    upstream = _go("mod", "edit", str(Path(wanted["GoMod"])))
    modules = MODULE / name
    modules.write_text(go_mod(release, upstream))
    modules.with_suffix(".sum").unlink(missing_ok=True)
    subprocess.run([str(find_go()), "mod", "tidy", f"-modfile={name}"], cwd=MODULE, check=True)


def go_mod(release: str, upstream: dict[str, Any]) -> str:
    """Return a ``go.mod`` that asks for a release; ``upstream`` is that of the release, as JSON.

    Raises ValueError if the release is not written as v1.X.Y.
    """
    if (found := _RELEASE.fullmatch(release)) is None:
        raise ValueError(f"release: {release!r}; expected v1.X.Y")
    replaced = [
        f"\t{each['Old']['Path']} => {each['Old']['Path']} v0.{found[1]}\n"
        for each in upstream["Replace"]
        if each["New"]["Path"].startswith(_STAGING)
    ]
    return (
        f"module reprieve/conformance\n\ngo {upstream['Go']}\n\nrequire {KUBERNETES} {release}\n\n"
        f"replace (\n{''.join(replaced)})\n"
    )


def _go(*arguments: str) -> dict[str, Any]:
    command = [str(find_go()), *arguments[:2], "-json", *arguments[2:]]
    told = subprocess.run(command, cwd=MODULE, check=True, stdout=subprocess.PIPE).stdout
    document: dict[str, Any] = orjson.loads(told)
    return document


if __name__ == "__main__":
    pin(*sys.argv[1:])
