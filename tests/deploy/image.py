"""The image as ``make image`` writes it: an OCI archive of a container engine, unpacked."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.builders import Document
from tests.deploy.container_root import User

ROOT: Final = Path(__file__).parents[2]
DOCKER: Final = ROOT / "deploy" / "docker"
ARCHIVE: Final = ROOT / "dist" / "image.tar"

_WHITEOUT: Final = ".wh.*"


@dataclass(frozen=True, slots=True)
class Image:
    """A root file system and the run options of its containers."""

    tree: Path
    environment: dict[str, str] = field(default_factory=dict)
    user: User = field(default_factory=User)
    directory: str = "/"
    entrypoint: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
    ports: list[int] = field(default_factory=list)


def unpack(archive: Path, work: Path) -> Image:
    """Unpack an OCI archive of one image into an empty directory, and return the image."""
    assert archive.exists(), f"{archive}: missing; `make image` builds it"
    blobs, tree = work / "blobs", work / "tree"
    for directory in (blobs, tree):
        directory.mkdir()
    _extract(archive, blobs)
    [manifest] = _document(blobs / "index.json")["manifests"]
    read = _document(_blob(blobs, manifest))
    for layer in read["layers"]:
        _extract(_blob(blobs, layer), tree)
    assert not list(tree.rglob(_WHITEOUT)), "a layer deletes files of the base"
    config = _document(_blob(blobs, read["config"]))["config"]
    uid, gid = map(int, config["User"].split(":"))
    return Image(
        tree,
        environment=dict(pair.split("=", 1) for pair in config["Env"]),
        user=User(uid, gid),
        directory=config.get("WorkingDir") or "/",
        entrypoint=config["Entrypoint"],
        command=config["Cmd"],
        ports=[int(port.removesuffix("/tcp")) for port in config["ExposedPorts"]],
    )


def _blob(blobs: Path, descriptor: Document) -> Path:
    algorithm, _, digest = str(descriptor["digest"]).partition(":")
    return blobs / "blobs" / algorithm / digest


def _document(path: Path) -> Document:
    document: Document = json.loads(path.read_text())
    return document


def _extract(archive: Path, directory: Path) -> None:
    subprocess.run(["tar", "-x", "--numeric-owner", "-f", archive, "-C", directory], check=True)
