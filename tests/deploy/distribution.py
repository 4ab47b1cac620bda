"""The files of a release, the same bytes in every run.

    python -m tests.deploy.distribution dist

writes the wheel, the source distribution, the chart, the software bill of materials, and the
digests of all files in that directory (``make dist`` adds the image). Times are those of
SOURCE_DATE_EPOCH, by default of the last commit; only files that git knows are packed.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import platform
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from shutil import copy2
from tempfile import TemporaryDirectory
from typing import Final
from zipfile import ZipFile

from tests.deploy.bill_of_materials import bill_of_materials
from tests.deploy.charts import CHART

ROOT: Final = Path(__file__).parents[2]
SUMS: Final = "SHA256SUMS"
EPOCH: Final = 1_700_000_000
"""The time of the releases that tests build."""

_BUILD: Final = (
    "import sys; from setuptools import build_meta as backend; directory, platform = sys.argv[1:];"
    " backend.build_wheel(directory, {'--build-option': ['--plat-name', platform]});"
    " backend.build_sdist(directory)"
)
_OLDEST_GLIBC: Final = (2, 17)
_GLIBC_VERSION: Final = re.compile(rb"\0GLIBC_(\d+)\.(\d+)")


def write_distribution(directory: Path, epoch: int) -> None:
    """Write all files but the image."""
    directory.mkdir(exist_ok=True)
    release = version("reprieve")
    _build_packages(directory, epoch)
    chart = {f"reprieve/{path.relative_to(CHART)}": path.read_bytes() for path in _tracked(CHART)}
    _write_tar(directory / f"reprieve-{release}.tgz", chart, epoch)
    document = json.dumps(bill_of_materials(epoch), indent=2) + "\n"
    (directory / f"reprieve-{release}.cdx.json").write_text(document)


def write_sums(directory: Path) -> None:
    """Write the digests of a directory's files, as ``sha256sum --check`` reads them."""
    files = sorted(path for path in directory.iterdir() if path.name != SUMS)
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (directory / SUMS).write_text("".join(sums))


def last_commit(environ: Mapping[str, str] = os.environ) -> int:
    """Return SOURCE_DATE_EPOCH, or else the time of the last commit, in seconds."""
    given = environ.get("SOURCE_DATE_EPOCH")
    return int(given or _git("log", "-1", "--format=%ct"))


def _build_packages(directory: Path, epoch: int) -> None:
    """Build the wheel and the source distribution, in a copy of the tree."""
    with TemporaryDirectory(prefix="release-") as home:
        tree, built = Path(home) / "tree", Path(home) / "built"
        for path in _tracked(ROOT):
            there = tree / path.relative_to(ROOT)
            there.parent.mkdir(parents=True, exist_ok=True)
            copy2(path, there)
            os.utime(there, (epoch, epoch))
        subprocess.run(
            [sys.executable, "-c", _BUILD, str(built), platform_tag()],
            cwd=tree,
            env={
                **os.environ,
                "SOURCE_DATE_EPOCH": str(epoch),
                "CFLAGS": f"-ffile-prefix-map={tree}=.",
            },
            capture_output=True,
            check=True,
        )
        [wheel] = built.glob("*.whl")
        _check_glibc(wheel)
        copy2(wheel, directory)
        [source] = built.glob("*.tar.gz")
        with tarfile.open(source) as archive:
            members = {
                each.name: content.read()
                for each in archive
                if (content := archive.extractfile(each)) is not None
            }
        _write_tar(directory / source.name, members, epoch)


def platform_tag() -> str:
    """Return the tag of systems that run the wheel: with this processor, and glibc 2.17 or newer.

    The package index accepts such a tag, and not that of the machine that builds the wheel.
    """
    return f"manylinux_{_OLDEST_GLIBC[0]}_{_OLDEST_GLIBC[1]}_{platform.machine()}"


def _check_glibc(wheel: Path) -> None:
    """Refuse a wheel whose libraries need a glibc that the tag does not promise."""
    with ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.endswith(".so"):
                found = _GLIBC_VERSION.findall(archive.read(name))
                needed = max(((int(major), int(minor)) for major, minor in found), default=(0, 0))
                if needed > _OLDEST_GLIBC:
                    raise ValueError(f"{name}: needs glibc {needed[0]}.{needed[1]}")


def _write_tar(path: Path, files: Mapping[str, bytes], epoch: int) -> None:
    """Write an archive whose bytes depend on its arguments only."""
    with (
        path.open("wb") as out,
        gzip.GzipFile("", "wb", fileobj=out, mtime=epoch) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name, content in sorted(files.items()):
            member = tarfile.TarInfo(name)
            member.size, member.mtime = len(content), epoch
            archive.addfile(member, BytesIO(content))


def _tracked(directory: Path) -> Iterator[Path]:
    for name in _git("ls-files", "-z", "--", str(directory)).split("\0"):
        if name:
            yield ROOT / name


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout


def main() -> None:
    """Write a distribution to the directory of the command line."""
    directory = Path(sys.argv[1])
    write_distribution(directory, last_commit())
    write_sums(directory)


if __name__ == "__main__":
    main()
