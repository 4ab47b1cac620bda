"""The files of a release, the image, unpacked once, and networks with a cluster in them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.distribution import EPOCH, write_distribution, write_sums
from tests.deploy.image import ARCHIVE, Image, unpack
from tests.deploy.network import Network, network


@pytest.fixture(scope="session")
def distribution(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with the files of a release but the image."""
    directory = tmp_path_factory.mktemp("dist")
    write_distribution(directory, EPOCH)
    write_sums(directory)
    return directory


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    """Return the image that ``make image`` built; its file tree can be read and run."""
    with network():  # asks for what running it takes
        work = tmp_path_factory.mktemp("image")
    return unpack(ARCHIVE, work)


@pytest.fixture
def net() -> Iterator[Network]:
    """A network of the test's own."""
    with network() as there:
        yield there
