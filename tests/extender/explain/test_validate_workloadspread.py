"""``validate workloadspread``: the rules, with a cluster from files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from extender.explain.validate_workloadspread import spread_errors, validation_document
from extender.explain.workloadspread_tables import errors_table
from extender.kube.workloadspread.spreads import decode_workloadspread
from policies.workloadspread.placement_validation import FieldValidationError
from policies.workloadspread.quirks import FIXED, UPSTREAM, Quirks
from tests.builders import encoded
from tests.builders.workloadspread import Document, clone_set_json, files, spread_json
from tests.commands import rendered

POD: Document = {"spec": {"containers": [{"name": "main", "image": "web:1"}]}}


def without_image(pod: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Return an error for each container without an image."""
    for index, container in enumerate(pod["spec"].get("containers") or ()):
        if not container.get("image"):
            yield f"containers[{index}].image", "Required value", ""


def errors_of(
    document: Document, *around: Document, quirks: Quirks = FIXED
) -> tuple[FieldValidationError, ...]:
    return spread_errors(
        decode_workloadspread(encoded(document)), files(*around), quirks, without_image
    )


def patched(container: Document, **spec: Any) -> Document:
    return spread_json({"name": "a", "patch": {"spec": {"containers": [container]}}}, **spec)


def test_a_document() -> None:
    assert validation_document(errors_of(spread_json({"name": "a"}))) == {
        "valid": True,
        "errors": [],
    }
    assert validation_document(errors_of(spread_json())) == {
        "valid": False,
        "errors": [
            {"field": "spec.subsets", "message": "subsets number must >= 1 in WorkloadSpread"}
        ],
    }


def test_patches_are_merged_into_the_targets_template() -> None:
    target = clone_set_json(template=POD)
    assert errors_of(patched({"name": "main", "env": []}), target) == ()
    (error,) = errors_of(patched({"name": "side"}), target)
    assert error.field == "spec.subsets[0].patch.containers[0].image"
    assert errors_of(patched({"name": "side"})) == ()


def test_the_patch_is_that_of_its_own_subset() -> None:
    twins = spread_json(
        {"name": "a"}, {"name": "a", "patch": {"spec": {"containers": [{"name": "x"}]}}}
    )
    fields = [each.field for each in errors_of(twins, clone_set_json(template=POD))]
    assert fields == ["spec.subsets[1].name", "spec.subsets[1].patch.containers[0].image"]


def test_a_patch_that_cannot_be_merged() -> None:
    (error,) = errors_of(patched({"image": "x", "tty": True}), clone_set_json(template=POD))
    assert str(error) == (
        "spec.subsets[0].patch: Invalid value: failed to merge patch: map: map[image:x tty:true] "
        "does not contain declared merge key: name"
    )


def test_claims_become_volumes() -> None:
    seen: list[Any] = []

    def look(pod: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
        seen.append(pod["spec"]["volumes"])
        yield from ()

    target = clone_set_json(template=POD, volumeClaimTemplates=[{"metadata": {"name": "data"}}])
    document = encoded(patched({"name": "main"}))
    spread_errors(decode_workloadspread(document), files(target), FIXED, look)
    assert seen == [[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]]


def test_advanced_stateful_sets_are_validated_except_upstream() -> None:
    reference = {"apiVersion": "apps.kruise.io/v1beta1", "kind": "StatefulSet", "name": "web"}
    target = {
        **clone_set_json(template=POD),
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "StatefulSet",
    }
    document = patched({"name": "side"}, targetRef=reference)
    assert len(errors_of(document, target)) == 1
    assert errors_of(document, target, quirks=UPSTREAM) == ()


def test_the_cluster_has_others_and_an_older_version() -> None:
    mine = spread_json({"name": "a"})
    other = spread_json({"name": "a"}, name="other")
    (error,) = errors_of(mine, other)
    assert error.detail == "ws.spec.targetRef is in conflict with other WorkloadSpread other"
    assert errors_of(mine, mine) == ()
    moved = spread_json({"name": "a"}, targetRef={**mine["spec"]["targetRef"], "name": "else"})
    (error,) = errors_of(moved, mine)
    assert error.detail == "change TargetReference is not permitted for WorkloadSpread"


def test_the_text_has_one_line_for_each_error() -> None:
    tables = errors_table("default/web", errors_of(spread_json())), errors_table("default/web", ())
    assert rendered(*tables, width=200).splitlines() == [
        "default/web is not valid",
        "spec.subsets: Required value: subsets number must >= 1 in WorkloadSpread",
        "default/web is valid",
    ]
