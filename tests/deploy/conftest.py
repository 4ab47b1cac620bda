"""The image, unpacked once, and networks with a cluster in them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.deploy.image import ARCHIVE, Image, unpack
from tests.deploy.network import Network, network


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
