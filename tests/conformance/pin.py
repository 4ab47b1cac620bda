"""Pin a release of Kubernetes: ``python -m tests.conformance.pin v1.37.0`` writes ``go.mod`` anew.

``k8s.io/kubernetes`` asks for its staging repositories at v0.0.0 and replaces them by folders that
only its own checkout has. Whoever imports it has to say which release is meant: v0.X.Y for v1.X.Y.
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


def pin(release: str) -> None:
    """Write ``go.mod`` and ``go.sum`` for a release such as v1.37.0, as the module proxy has it."""
    wanted = _go("mod", "download", f"{KUBERNETES}@{release}")
    upstream = _go("mod", "edit", str(Path(wanted["GoMod"])))
    (MODULE / "go.mod").write_text(go_mod(release, upstream))
    (MODULE / "go.sum").unlink(missing_ok=True)
    subprocess.run([str(find_go()), "mod", "tidy"], cwd=MODULE, check=True)


def go_mod(release: str, upstream: dict[str, Any]) -> str:
    """Give a ``go.mod`` that asks for a release; ``upstream`` is that of the release, as JSON.

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
    pin(sys.argv[1])
