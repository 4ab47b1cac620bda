"""The image of a Dockerfile, built without a container engine.

Each stage is a directory that its steps fill; the contents of base images are this machine's
(:mod:`tests.deploy.container_root`). Only the instructions of our Dockerfile are supported.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

from tests.deploy.container_root import ContainerRoot, Mount, User

ROOT: Final = Path(__file__).parents[2]
DOCKERFILE: Final = ROOT / "deploy" / "docker" / "Dockerfile"

_WORD: Final = re.compile(r"\$\{?(\w+)\}?")
_CACHE: Final = re.compile(r"--mount=type=cache,target=(\S+)\s+")
_BUT: Final = "!"


@dataclass(slots=True)
class Image:
    """A stage: its file tree and run options; ``base`` is the name of its base image."""

    base: str
    tree: Path
    directory: str = "/"
    environment: dict[str, str] = field(default_factory=dict)
    user: User = field(default_factory=User)
    entrypoint: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
    ports: list[int] = field(default_factory=list)


def build(dockerfile: Path, context: Path, work: Path) -> Image:
    """Build a Dockerfile, and return its last stage; ``work`` is an empty directory."""
    builder = _Builder(context, work, _ignored(dockerfile))
    for name, rest in instructions(dockerfile.read_text()):
        builder.follow(name, rest)
    return builder.stages[-1]


def instructions(text: str) -> Iterator[tuple[str, str]]:
    """Return the instructions of a Dockerfile, each with its arguments."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        if line.strip():
            name, _, rest = line.strip().partition(" ")
            yield name, rest.strip()


@dataclass(slots=True)
class _Builder:
    context: Path
    work: Path
    ignored: Sequence[str]
    stages: list[Image] = field(default_factory=list)
    names: dict[str, Image] = field(default_factory=dict)
    arguments: dict[str, str] = field(default_factory=dict)

    def follow(self, name: str, rest: str) -> None:
        getattr(self, f"_{name.lower()}")(rest)

    def _arg(self, rest: str) -> None:
        name, _, value = rest.partition("=")
        self.arguments[name] = value

    def _from(self, rest: str) -> None:
        base, _, name = rest.partition(" AS ")
        tree = self.work / f"stage-{len(self.stages)}"
        tree.mkdir()
        (tree / "tmp").mkdir()
        (tree / "tmp").chmod(0o1777)
        stage = Image(_WORD.sub(lambda found: self.arguments[found[1]], base), tree)
        self.stages.append(stage)
        self.names[name] = stage

    def _workdir(self, rest: str) -> None:
        self._stage.directory = rest
        _inside(self._stage.tree, rest).mkdir(parents=True, exist_ok=True)

    def _copy(self, rest: str) -> None:
        words = rest.split()
        origin = self.context
        of_context = not words[0].startswith("--from=")
        if not of_context:
            origin = self.names[words.pop(0).removeprefix("--from=")].tree
        *sources, target = words
        place = _inside(self._stage.tree, os.path.normpath(Path(self._stage.directory) / target))
        for source in sources:
            path = origin / source.lstrip("/")
            if path.is_dir():
                shutil.copytree(
                    path, place, dirs_exist_ok=True, ignore=self._left_out if of_context else None
                )
                continue
            assert not of_context or not self._is_ignored(path), f"{source} is ignored"
            into = place / path.name if target.endswith("/") else place
            into.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, into)

    def _run(self, rest: str) -> None:
        mounts = []
        while cache := _CACHE.match(rest):
            kept = Path.home() / ".cache" / "pip"
            kept.mkdir(parents=True, exist_ok=True)
            mounts.append(Mount(kept, cache[1], writable=True))
            rest = rest[cache.end() :]
        index = {name: value for name, value in os.environ.items() if _is_about_the_index(name)}
        wheels = Path(index.get("PIP_FIND_LINKS", "/nowhere"))
        if wheels.is_dir():  # a directory of this machine that is no part of the image
            mounts.append(Mount(wheels, "/base-wheels"))
            index["PIP_FIND_LINKS"] = "/base-wheels"
        stage = self._stage
        root = ContainerRoot(
            stage.tree,
            mounts=mounts,
            environment={**index, "HOME": "/root", **stage.environment},
            directory=stage.directory,
            read_only=False,
            confined=False,
        )
        done = subprocess.run(
            root.command("sh", "-c", rest), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"RUN {rest}\n{done.stdout}{done.stderr}"

    def _env(self, rest: str) -> None:
        self._stage.environment |= dict(pair.split("=", 1) for pair in rest.split())

    def _user(self, rest: str) -> None:
        uid, gid = map(int, rest.split(":"))
        self._stage.user = User(uid, gid)

    def _expose(self, rest: str) -> None:
        self._stage.ports.append(int(rest))

    def _entrypoint(self, rest: str) -> None:
        self._stage.entrypoint = json.loads(rest)

    def _cmd(self, rest: str) -> None:
        self._stage.command = json.loads(rest)

    @property
    def _stage(self) -> Image:
        return self.stages[-1]

    def _left_out(self, directory: str, names: list[str]) -> list[str]:
        return [name for name in names if self._is_ignored(Path(directory) / name)]

    def _is_ignored(self, path: Path) -> bool:
        """Return whether the last pattern that applies ignores a path, as in Docker."""
        relative = path.relative_to(self.context)
        above = [str(each) for each in (relative, *relative.parents)]
        ignored = False
        for pattern in self.ignored:
            named = pattern.removeprefix(_BUT)
            if any(_applies(named, each) for each in above):
                ignored = not pattern.startswith(_BUT)
        return ignored


def _applies(pattern: str, path: str) -> bool:
    if pattern.startswith("**/"):
        return fnmatch(Path(path).name, pattern.removeprefix("**/"))
    return path == pattern or (pattern == "*" and "/" not in path and path != ".")


def _ignored(dockerfile: Path) -> list[str]:
    lines = dockerfile.with_name(f"{dockerfile.name}.dockerignore").read_text().splitlines()
    return [line for line in map(str.strip, lines) if line and not line.startswith("#")]


def _inside(tree: Path, path: str) -> Path:
    return tree / path.lstrip("/")


def _is_about_the_index(name: str) -> bool:
    return name.startswith("PIP_") or name.lower() in {"http_proxy", "https_proxy", "no_proxy"}
