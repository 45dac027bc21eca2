"""The runner on cases that are not in our file, and on wrong expectations."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.cases import OWN_CASES, Case, UnknownShape, load_cases
from tests.conformance.regenerate import differences
from tests.conformance.test_conformance import AREAS, run
from tests.conformance.unseen import PAIR, UNSEEN
from tests.conformance.unseen_stages import UNSEEN_STAGES


@pytest.mark.parametrize("case", [*UNSEEN, *UNSEEN_STAGES], ids=lambda case: case.area)
def test_unseen_cases_run(case: Case) -> None:
    run(case)


def test_our_numbers_are_the_oracles() -> None:
    content = json.loads(OWN_CASES.read_text(encoding="utf-8"))
    assert differences(content["cases"]) == []


def _spoil(value: Any) -> Any:
    """Something else of the same shape."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + 1
    if isinstance(value, str):
        return "spoilt" if value != "fails" else "ok"
    if isinstance(value, list):
        return [*value, *value[:1]] if value else [{}]
    if isinstance(value, dict):
        return {k: _spoil(v) for k, v in value.items()}
    return "something"


@pytest.mark.slow
@pytest.mark.parametrize("case", load_cases(OWN_CASES), ids=lambda case: case.id)
def test_every_expectation_can_fail(case: Case) -> None:
    for key, value in case.expect.items():
        if case.id == "PRE-028" and key == "interpreted_chw":
            continue  # seen only in the text of the refusal
        wrong = copy.deepcopy(case.expect) | {key: _spoil(value)}
        with pytest.raises(AssertionError):
            run(Case(case.id, case.area, case.given, wrong, "", case.generation, case.tolerance))


SHARP = {"parsed": PAIR, "cluster_mode": 4, "class_attrs_all": {"sharpness": 1}}


def test_what_is_not_understood_fails_loudly() -> None:
    geometry = {"crop_ltwh": [0, 0, 64, 64], "network_wh": [32, 32]}
    for given, expect in (
        (geometry | {"rotation": 90}, {"offset_left": 0}),
        (geometry, {"aspect": 1}),
        ({"network_wh": [32, 32]}, {"offset_left": 0}),
    ):
        with pytest.raises((UnknownShape, TypeError)):
            run(Case("?", "preprocess.geometry", given, expect))
    listed = {"cases": [{"failure": "dequeue"}, {"failure": "of the moon"}]}
    wrong = {"of the moon": {"element_error": [True, True]}, "expect.a": {"a": [1]}}
    for words, expect in wrong.items():
        with pytest.raises(UnknownShape, match=words):
            run(Case("?", "errors", listed, expect))
    with pytest.raises(UnknownShape, match="nobody reads"):
        run(Case("?", "labels", {"labels_lines": ["a"], "cases": [1]}, {"count": 1}))
    with pytest.raises(UnknownShape, match="sharpness"):
        run(Case("?", "detector.cluster_mode_4", SHARP, {"count": 4}))


def test_what_stands_beside_given_and_expect_fails_by_its_name(tmp_path: Path) -> None:
    case = json.loads(OWN_CASES.read_text(encoding="utf-8"))["cases"][0] | {"notes": "a remark"}
    part = {"given": {"failure": "dequeue"}, "expect": {"element_error": True}}
    for changed, word in (
        (case | {"wobble": 1}, "wobble"),
        (case | {"area": "of.the.moon"}, r"of\.the\.moon"),
        (case | {"generation": "99"}, "99"),
        ({"id": "?", "area": "errors", "given": {"cases": [part | {"wobble": 1}]}, "expect": {}},
         "wobble"),
    ):  # fmt: skip
        with pytest.raises(UnknownShape, match=word):
            run(_written(tmp_path, cases=[changed])[0])
    run(_written(tmp_path, cases=[case], count=1)[0])
    for beside, word in (({"wobble": 1}, "wobble"), ({"count": 2}, "count 2")):
        with pytest.raises(UnknownShape, match=word):
            _written(tmp_path, cases=[case], **beside)


def _written(folder: Path, **content: Any) -> list[Case]:
    path = folder / "cases.json"
    path.write_text(json.dumps({"schema": "nvinfer-conformance/1", **content}))
    return load_cases(path)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where mappings stand in a value; of a list the first item stands for the others."""
    if isinstance(value, dict):
        yield path
        for key, inner in value.items():
            yield from places(inner, (*path, key))
    elif isinstance(value, list) and value:
        yield from places(value[0], (*path, 0))


@pytest.mark.slow
@pytest.mark.parametrize("case", load_cases(OWN_CASES), ids=lambda case: case.id)
def test_a_form_that_nothing_reads_fails_by_its_name_wherever_it_stands(case: Case) -> None:
    for side in ("given", "expect"):
        for path in places(getattr(case, side)):
            both = {"given": case.given, "expect": case.expect}
            inner = both[side] = copy.deepcopy(both[side])
            for step in path:
                inner = inner[step]
            inner["wobble"] = 1
            with pytest.raises(UnknownShape, match=r"wobble|class-attrs"):
                run(replace(case, **both))


def test_every_area_of_ours_has_cases() -> None:
    assert {case.area for case in load_cases(OWN_CASES)} == set(AREAS)


def test_a_file_of_another_schema_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cases.json"
    path.write_text('{"schema": "other/1", "cases": []}')
    with pytest.raises(ValueError, match="other/1"):
        load_cases(path)
