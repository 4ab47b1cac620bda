"""Rejections as codes: the first one is kept, and a mapping reads them by name."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from policies.preemption.columns.encoded_column import Bools
from policies.preemption.filtering.status import Code, Reason, Rejection, refused, unresolvable
from policies.preemption.vectorized.status import (
    FITS,
    Codes,
    Rejections,
    RejectionsByNode,
    RowStatuses,
    count_reasons,
    fits_without_preemption,
)

PORTS = refused(Code.HOST_PORTS)
CORDONED = unresolvable(Code.UNSCHEDULABLE)
SHORT = Rejection((Reason(Code.TOO_MANY_PODS), Reason(Code.INSUFFICIENT, "cpu")), resolvable=True)
NAMES = ("n1", "n2", "n3", "n4")


def marks(*places: int) -> Bools:
    found = np.zeros(len(NAMES), np.bool_)
    found[list(places)] = True
    return found


def rejected_rows() -> RowStatuses:
    """Return statuses: n2 is cordoned, ports of n2 and n3 are used, and n4 needs no victim."""
    statuses = RowStatuses(Rejections(), len(NAMES))
    statuses.refuse(marks(1), CORDONED)
    statuses.refuse(marks(1, 2), PORTS)
    statuses.set_no_victim_needed(np.array([3]))
    return statuses


def by_name(statuses: RowStatuses) -> RejectionsByNode:
    return RejectionsByNode(NAMES, statuses.codes, statuses.rejections)


NEEDLESS = unresolvable(Code.NO_VICTIM_NEEDED, "n4")
EXPECTED = {"n2": CORDONED, "n3": PORTS, "n4": NEEDLESS}


def test_the_first_rejection_of_a_row_is_kept() -> None:
    statuses = rejected_rows()
    assert statuses.fits.tolist() == [True, False, False, False]
    assert by_name(statuses) == EXPECTED


def test_rows_can_be_refused_each_by_its_own_code() -> None:
    statuses = rejected_rows()
    short = statuses.rejections.code(SHORT)
    statuses.refuse_each(np.array([short, short, FITS, FITS], np.int32))
    assert by_name(statuses) == {"n1": SHORT, **EXPECTED}
    assert statuses.codes.dtype == np.int32


def test_a_status_of_one_row_replaces_the_earlier_one() -> None:
    statuses = rejected_rows()
    statuses.set_status(1, None)
    statuses.set_status(2, SHORT)
    statuses.set_status(0, unresolvable(Code.NO_VICTIM_NEEDED, "n1"))
    assert by_name(statuses) == {
        "n1": unresolvable(Code.NO_VICTIM_NEEDED, "n1"),
        "n3": SHORT,
        "n4": NEEDLESS,
    }


def test_equal_rejections_share_a_code() -> None:
    rejections = Rejections()
    assert rejections.code(PORTS) == rejections.code(refused(Code.HOST_PORTS)) != FITS
    assert rejections.code(CORDONED) != rejections.code(PORTS)
    assert rejections.of(rejections.code(CORDONED), "n1") == CORDONED


def test_a_code_has_its_resolvability() -> None:
    statuses = rejected_rows()
    might_help = statuses.rejections.resolvable()[statuses.codes]
    assert might_help.tolist() == [False, False, True, False]


def test_reasons_are_counted_over_rows_without_those_that_need_no_victims() -> None:
    statuses = rejected_rows()
    statuses.set_status(0, SHORT)
    statuses.set_status(1, SHORT)
    assert count_reasons(statuses.codes, statuses.rejections) == {
        Reason(Code.TOO_MANY_PODS): 2,
        Reason(Code.INSUFFICIENT, "cpu"): 2,
        Reason(Code.HOST_PORTS): 1,
    }
    assert fits_without_preemption(statuses.codes).tolist() == [False, False, False, True]


def test_no_rows_have_no_reasons() -> None:
    assert count_reasons(np.zeros(0, np.int32), Rejections()) == {}


# By name


def test_rejections_by_name_are_a_mapping_of_the_refused_rows() -> None:
    found = by_name(rejected_rows())
    assert len(found) == 3
    assert list(found) == ["n2", "n3", "n4"]
    assert [*found.items()] == [*EXPECTED.items()]
    assert "n2" in found
    assert "n1" not in found
    assert "unknown" not in found
    assert found.get("n1") is None
    assert repr(found) == repr(EXPECTED)


@pytest.mark.parametrize("name", ["n1", "unknown"])
def test_a_name_that_was_not_refused_is_a_key_error(name: str) -> None:
    with pytest.raises(KeyError, match=name):
        by_name(rejected_rows())[name]


def test_rejections_by_name_equal_a_dict_both_ways() -> None:
    found: Mapping[str, Rejection] = by_name(rejected_rows())
    assert found == EXPECTED
    assert dict(EXPECTED) == found
    assert found == by_name(rejected_rows())
    assert found != {**EXPECTED, "n1": PORTS}
    assert dict.fromkeys(["n2"], CORDONED) != found


def test_no_rejections_are_an_empty_mapping() -> None:
    codes: Codes = np.zeros(2, np.int32)
    found = RejectionsByNode(("n1", "n2"), codes, Rejections())
    assert (len(found), list(found), dict(found)) == (0, [], {})
    assert not found
