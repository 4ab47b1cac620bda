"""Addresses: no two pods have one at the same time."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakeapi.controlplane.kubelet.ip_allocator import (
    NodeIPAllocator,
    PodCIDRPool,
    PodIPAllocator,
    node_address,
)


def test_nodes_have_addresses_by_their_numbers() -> None:
    assert [node_address(index) for index in (0, 1, 5000)] == [
        *("172.16.0.2", "172.16.0.3", "172.16.19.138")
    ]


@pytest.mark.parametrize("cidr", ["", "nonsense", "fd00::/64"])
def test_pods_get_addresses_of_blocks(cidr: str) -> None:
    blocks = PodCIDRPool()
    one, other = PodIPAllocator(blocks, cidr), PodIPAllocator(blocks, cidr)
    found = [one.allocate("a"), one.allocate("b"), other.allocate("c")]
    assert found == ["10.0.0.2", "10.0.0.3", "10.0.1.2"]


def test_pods_get_addresses_of_their_nodes_range() -> None:
    addresses = PodIPAllocator(PodCIDRPool(), "10.244.3.0/29")
    found = [addresses.allocate(str(index)) for index in range(6)]
    assert found[:5] == [f"10.244.3.{number}" for number in (2, 3, 4, 5, 6)]
    assert found[5] == "10.0.0.2"  # the range is used up


def test_an_address_is_used_again_last() -> None:
    addresses = PodIPAllocator(PodCIDRPool(), "10.244.3.0/29")
    first = addresses.allocate("a")
    addresses.release("a", first)
    later = [addresses.allocate(str(index)) for index in range(5)]
    assert later == ["10.244.3.3", "10.244.3.4", "10.244.3.5", "10.244.3.6", first]


def test_an_assigned_address_is_not_assigned_again() -> None:
    blocks = PodCIDRPool()
    blocks.reserve("old", "10.0.0.2")
    assert PodIPAllocator(blocks, "").allocate("new") == "10.0.0.3"


def test_a_reserved_node_address_is_not_assigned_again() -> None:
    addresses = NodeIPAllocator()
    addresses.reserve("old", "172.16.0.3")
    assert [addresses.allocate("a"), addresses.allocate("b")] == ["172.16.0.2", "172.16.0.4"]


def test_a_release_by_an_earlier_pod_does_not_free_an_address() -> None:
    blocks = PodCIDRPool()
    addresses = PodIPAllocator(blocks, "")
    address = addresses.allocate("a")
    addresses.release("a", address)
    blocks.reserve("b", address)
    addresses.release("a", address)
    assert not blocks.is_free(address)


def test_an_exhausted_pool_is_an_error() -> None:
    blocks = PodCIDRPool()
    for _ in range(2**16):
        blocks.allocate_block()
    with pytest.raises(ValueError, match="no more addresses for pods"):
        PodIPAllocator(blocks, "").allocate("a")


acts = st.tuples(st.sampled_from(["add", "remove"]), st.integers(0, 2), st.integers(0, 9))


@given(st.lists(acts, max_size=60))
def test_no_two_pods_have_one_address(script: list[tuple[str, int, int]]) -> None:
    blocks = PodCIDRPool()
    nodes = [PodIPAllocator(blocks, cidr) for cidr in ("10.244.0.0/29", "", "10.244.0.0/28")]
    held: dict[tuple[int, int], str] = {}
    for act, node, pod in script:
        address = held.pop((node, pod), None)
        if address is not None:
            nodes[node].release(f"{node}-{pod}", address)
        if act == "add":
            held[node, pod] = nodes[node].allocate(f"{node}-{pod}")
        assert len(set(held.values())) == len(held)
        assert all(IPv4Address(each) in IPv4Network("10.0.0.0/8") for each in held.values())
