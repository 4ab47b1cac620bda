"""pytest fixtures for fake clusters; installing the package registers them.

    async def test_it_counts_nodes(fake_cluster):
        fake_cluster.load([node])
        ...                                    # fake_cluster.client, .url, .kubeconfig_path

    def test_kubectl_sees_them(fake_cluster):  # not async: the cluster runs in a thread
        ...

``fake_cluster``          a new cluster for each test
``fake_cluster_factory``  creates any number of clusters with the options of ``FakeCluster``; an
                          async test awaits the call
``virtual_cluster``       no sockets, and a clock that the test advances (async tests only)

Async tests need pytest-asyncio, in either mode; without it clusters run in threads.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack
from importlib.util import find_spec
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pytest

import fakeapi  # the first fixture imports the rest: pytest always loads this file

if TYPE_CHECKING:
    from fakeapi.testing.fake_cluster import FakeCluster
    from fakeapi.testing.threaded_cluster import ThreadedCluster
    from fakeapi.testing.virtual_cluster import VirtualCluster

AnyCluster: TypeAlias = "FakeCluster | ThreadedCluster[Any]"
AsyncFactory: TypeAlias = "Callable[..., Awaitable[FakeCluster]]"
Factory: TypeAlias = "Callable[..., ThreadedCluster[Any]]"

HAS_PYTEST_ASYNCIO: Final = find_spec("pytest_asyncio") is not None

if HAS_PYTEST_ASYNCIO:
    from pytest_asyncio import fixture as async_fixture

    @async_fixture
    async def _fake_cluster_factory_on_loop() -> AsyncIterator[AsyncFactory]:
        async with AsyncExitStack() as stack:

            async def create(**options: Any) -> FakeCluster:
                return await stack.enter_async_context(fakeapi.FakeCluster(**options))

            yield create

    @async_fixture
    async def _fake_cluster_on_loop() -> AsyncIterator[FakeCluster]:
        async with fakeapi.FakeCluster() as cluster:
            yield cluster

    @async_fixture
    async def virtual_cluster() -> AsyncIterator[VirtualCluster]:
        """A cluster without sockets, on a clock that the test advances."""
        async with fakeapi.VirtualCluster() as cluster:
            yield cluster


@pytest.fixture
def _fake_cluster_factory_in_thread() -> Iterator[Factory]:
    with ExitStack() as stack:

        def create(**options: Any) -> ThreadedCluster[Any]:
            return stack.enter_context(fakeapi.FakeCluster.in_thread(**options))

        yield create


@pytest.fixture
def _fake_cluster_in_thread() -> Iterator[ThreadedCluster[Any]]:
    with fakeapi.FakeCluster.in_thread() as cluster:
        yield cluster


@pytest.fixture
def fake_cluster(request: pytest.FixtureRequest) -> AnyCluster:
    """Return a new cluster: on the test's event loop, or in a thread for a synchronous test."""
    cluster: AnyCluster = request.getfixturevalue(f"_fake_cluster_{_fixture_suffix(request)}")
    return cluster


@pytest.fixture
def fake_cluster_factory(request: pytest.FixtureRequest) -> AsyncFactory | Factory:
    """Return a function that starts clusters; they end with the test."""
    factory: AsyncFactory | Factory = request.getfixturevalue(
        f"_fake_cluster_factory_{_fixture_suffix(request)}"
    )
    return factory


def _fixture_suffix(request: pytest.FixtureRequest) -> str:
    return (
        "on_loop" if HAS_PYTEST_ASYNCIO and iscoroutinefunction(request.function) else "in_thread"
    )
