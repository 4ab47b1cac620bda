"""A sorted map, and copies that do not see each other's writes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakeapi.apiserver.store.copy_on_write_map import RUN, CopyOnWriteMap


def filled(count: int) -> CopyOnWriteMap[int]:
    space: CopyOnWriteMap[int] = CopyOnWriteMap()
    for number in range(count):
        space.put(f"{number * 7919 % count:06}", number)
    return space


def test_values_are_in_the_order_of_their_keys_over_many_runs() -> None:
    space = filled(5 * RUN)
    assert len(space) == len(list(space)) == 5 * RUN
    assert [space.get(f"{n:06}") for n in (0, RUN, 5 * RUN - 1)] == [
        next(i for i in range(5 * RUN) if i * 7919 % (5 * RUN) == n) for n in (0, RUN, 5 * RUN - 1)
    ]
    assert space.between("") == list(space)


def test_a_missing_key_is_none_and_cannot_be_removed() -> None:
    space = filled(3)
    assert space.get("x") is None
    with pytest.raises(KeyError):
        space.remove("x")


def test_a_copy_shares_every_run_that_neither_has_written_to() -> None:
    space = filled(10 * RUN)
    other = space.copy()
    other.put("000003", -1)
    shared = sum(one is two for one, two in zip(space._runs, other._runs, strict=True))
    assert shared == len(space._runs) - 1


KEYS = st.sampled_from([f"{letter}/{number}" for letter in "abc" for number in range(9)])
scripts = st.lists(
    st.tuples(st.sampled_from("prc"), KEYS, st.integers(0, 3)), max_size=60
)  # put, remove, copy; on the map of that number


@given(scripts, KEYS, KEYS)
def test_every_copy_behaves_as_a_dict_of_its_own(
    script: list[tuple[str, str, int]], low: str, high: str
) -> None:
    spaces: list[CopyOnWriteMap[int]] = [CopyOnWriteMap()]
    models: list[dict[str, int]] = [{}]
    for step, (verb, key, number) in enumerate(script):
        index = number % len(spaces)
        space, model = spaces[index], models[index]
        if verb == "p":
            space.put(key, step)
            model[key] = step
        elif verb == "r" and key in model:
            space.remove(key)
            del model[key]
        elif verb == "c":
            spaces.append(space.copy())
            models.append(dict(model))
    for space, model in zip(spaces, models, strict=True):
        assert list(space) == [model[key] for key in sorted(model)]
        assert len(space) == len(model)
        inside = [model[key] for key in sorted(model) if low <= key < high]
        assert space.between(low, high) == inside
        assert [space.get(key) for key in sorted(model)] == list(space)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 1200)), max_size=30))
def test_runs_split_and_vanish_without_losing_a_key(blocks: list[tuple[bool, int]]) -> None:
    space: CopyOnWriteMap[int] = CopyOnWriteMap()
    model: dict[str, int] = {}
    for adding, first in blocks:
        for number in range(first, first + 150):
            key = f"{number:05}"
            if adding:
                space.put(key, number)
                model[key] = number
            elif key in model:
                space.remove(key)
                del model[key]
    assert list(space) == [model[key] for key in sorted(model)]
    assert space.between("00100", "00900") == [
        model[key] for key in sorted(model) if "00100" <= key < "00900"
    ]
