"""Every case of the file, by its area and by what it gives, never by its id."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headrace.config.enums import ClusterMode
from tests.conformance import (
    detector_areas,
    failure_areas,
    preprocess_areas,
    result_areas,
    scheduling_areas,
    secondary_areas,
)
from tests.conformance.cases import (
    Case,
    Given,
    UnknownShape,
    case_file,
    check_form,
    compare,
    load_cases,
    parts,
)

Runner = Callable[[Case, Given], dict[str, Any]]

AREAS: dict[str, Runner] = {
    "preprocess.geometry": preprocess_areas.geometry,
    "preprocess.normalise": preprocess_areas.normalise,
    "preprocess.layout": preprocess_areas.layout,
    "preprocess.meanfile": preprocess_areas.mean_file,
    "preprocess.config": preprocess_areas.config,
    "detector.builtin_parser": detector_areas.builtin_parser,
    "detector.coordinates": detector_areas.coordinates,
    "detector.meta": detector_areas.meta,
    "labels": detector_areas.labels,
    "instance_segmentation": result_areas.instance_segmentation,
    "classifier": result_areas.classifier,
    "segmentation": result_areas.segmentation,
    "tensor_meta": result_areas.tensor_meta,
    "secondary": secondary_areas.secondary,
    "scheduling": scheduling_areas.scheduling,
    "tensor_input": scheduling_areas.tensor_input,
    "errors": failure_areas.errors,
    "model_update": failure_areas.model_update,
} | {f"detector.cluster_mode_{mode:d}": detector_areas.clustering for mode in ClusterMode}


def runner_of(area: str) -> Runner | None:
    if area not in AREAS and area.startswith("detector.cluster"):
        return detector_areas.clustering
    return AREAS.get(area)


CASES = load_cases(case_file())


def run(case: Case) -> None:
    """Raises AssertionError if the product does otherwise than the case expects."""
    check_form(case)
    listed = parts(case)
    if listed is not None:
        for part in listed:
            run(part)
        return
    given = Given(case.given, f"{case.id} given")
    runner = runner_of(case.area)
    if runner is None:
        raise UnknownShape(f"{case.id}: no runner for the area {case.area!r}")
    actual = runner(case, given)
    given.done()
    compare(case.expect, actual, case.tolerance)


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_case(case: Case) -> None:
    run(case)
