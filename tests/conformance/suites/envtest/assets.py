"""The directory of programs that envtest starts (KUBEBUILDER_ASSETS)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).parents[4]
_MODULES: Final = {"etcd": "etcd", "kube-apiserver": "kube_apiserver"}


def install(directory: Path) -> None:
    """Write the programs into an empty directory.

    Envtest looks for a flag of old releases in the answer to ``--help``.
    """
    for program, module in _MODULES.items():
        script = directory / program
        script.write_text(
            "#!/bin/sh\n"
            '[ "$1" != --help ] || exit 0\n'
            f'export PYTHONPATH="{_ROOT}"\n'
            f'exec "{sys.executable}" -m tests.conformance.suites.envtest.{module} "$@"\n'
        )
        script.chmod(0o755)
    (directory / "kubectl").symlink_to(Path(sys.executable).with_name("kubectl"))
