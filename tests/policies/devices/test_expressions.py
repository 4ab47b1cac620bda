"""Selectors of devices: the supported subset of CEL, and what is unknown."""

from __future__ import annotations

import pytest

from policies.devices.expressions import compile_selector
from policies.kubernetes.devices import Attribute, AttributeType, Capacity, Device
from policies.kubernetes.quantity import parse_quantity

DRIVER = "gpu.example.com"
DEVICE = Device(
    "gpu-0",
    attributes={
        "type": Attribute(AttributeType.STRING, "gpu"),
        "index": Attribute(AttributeType.INT, 1),
        "healthy": Attribute(AttributeType.BOOL, value=True),
        "driverVersion": Attribute(AttributeType.VERSION, "12.10.0"),
        "example.org/numa": Attribute(AttributeType.INT, 0),
        "lanes": Attribute(AttributeType.UNSUPPORTED, 0),
    },
    capacity={"memory": Capacity(parse_quantity("80Gi"))},
)

RESULTS = {
    "device.driver == 'gpu.example.com'": True,
    'device.driver == "other.example.com"': False,
    'device.attributes["gpu.example.com"].type == "gpu"': True,
    'device.attributes["gpu.example.com"]["type"] != "gpu"': False,
    'device.attributes["gpu.example.com"].index > 0': True,
    'device.attributes["gpu.example.com"].index in [2, 3]': False,
    'device.attributes["gpu.example.com"].healthy': True,
    '!device.attributes["gpu.example.com"].healthy': False,
    'device.attributes["example.org"].numa == 0': True,
    # In CEL a number is never equal to a bool.
    'device.attributes["gpu.example.com"].healthy == 1': False,
    'device.attributes["gpu.example.com"].type.matches("^g.u$")': True,
    'device.attributes["gpu.example.com"].type.startsWith("x")': False,
    'device.attributes["gpu.example.com"].driverVersion.isGreaterThan(semver("12.9.0"))': True,
    'device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0': True,
    'device.capacity["gpu.example.com"].memory.isLessThan(quantity("40Gi"))': False,
    'device.capacity["gpu.example.com"].memory == quantity("81920Mi")': True,
    '"type" in device.attributes["gpu.example.com"]': True,
    '"model" in device.attributes["gpu.example.com"]': False,
    'has(device.attributes["gpu.example.com"].model)': False,
    "device.allowMultipleAllocations": False,
    "device.driver == 'x' || (true && !false)": True,
    # An absent attribute is an error, which && and || absorb.
    'device.attributes["gpu.example.com"].model == "a100"': None,
    'false && device.attributes["gpu.example.com"].model == "a100"': False,
    'device.attributes["gpu.example.com"].model == "a100" || true': True,
    'true && device.attributes["gpu.example.com"].model == "a100"': None,
    # Lists, types that are not ordered, and expressions outside the subset.
    'device.attributes["gpu.example.com"].lanes == 1': None,
    'has(device.attributes["gpu.example.com"].lanes)': True,
    'device.attributes["gpu.example.com"].type > 3': None,
    'device.attributes["gpu.example.com"].type.matches("(?i)GPU")': True,
    'device.attributes["gpu.example.com"].type.matches("(")': None,
    'device.capacity["gpu.example.com"].memory > 3': None,
    'cel.bind(d, device.attributes["gpu.example.com"], d.healthy)': None,
    "[1, 2].exists(n, n == 1)": None,
    "device.driver": None,
    "device.driver ==": None,
    "1.5 < 2": None,
    "": None,
}


@pytest.mark.parametrize(("expression", "result"), RESULTS.items(), ids=RESULTS)
def test_an_expression_is_true_false_or_unknown(expression: str, result: bool | None) -> None:  # noqa: FBT001 - the expected value
    assert compile_selector(expression).matches(DRIVER, DEVICE) is result


def test_a_selector_names_the_attributes_that_it_reads() -> None:
    found = compile_selector('device.attributes["a.b"].c == 1 || "e" in device.attributes["d"]')
    assert found.attributes == {"a.b/c", "d/e"}
