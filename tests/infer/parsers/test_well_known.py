"""Built-in parsers by name: the table of names is that of the heads, and imports none of them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from headrace.infer.parsers import (
    WELL_KNOWN,
    WELL_KNOWN_CLASSIFIERS,
    WELL_KNOWN_INSTANCES,
    WELL_KNOWN_SEGMENTATIONS,
    classifiers,
)
from headrace.infer.parsers.catalogue import HEADS, INSTANCE_HEADS, SEGMENTATION_HEADS


@pytest.mark.parametrize(
    ("parsers", "heads"),
    [
        (WELL_KNOWN, HEADS),
        (WELL_KNOWN_INSTANCES, INSTANCE_HEADS),
        (WELL_KNOWN_SEGMENTATIONS, SEGMENTATION_HEADS),
    ],
    ids=["boxes", "masks", "maps"],
)
def test_each_head_has_its_name_in_the_order_of_the_catalogue(parsers, heads) -> None:
    assert [*parsers] == [head.name for head in heads]
    assert len(parsers) == len(heads)
    for head in heads:
        assert parsers[head.name].head is head
        assert parsers[head.name] is parsers[head.name]  # what it has learnt of outputs stays


def test_classifiers_have_theirs() -> None:
    assert {**WELL_KNOWN_CLASSIFIERS} == {**classifiers.PARSERS}


def test_another_name_has_none() -> None:
    assert WELL_KNOWN.get("NvDsInferParseNothing") is None
    assert "NvDsInferParseNothing" not in WELL_KNOWN
    with pytest.raises(KeyError):
        WELL_KNOWN["NvDsInferParseNothing"]


@pytest.mark.slow
def test_asking_for_one_imports_its_file_alone() -> None:
    code = (
        "import sys; from headrace.infer.parsers import WELL_KNOWN; "
        "assert 'HeadraceParseYoloX' in WELL_KNOWN and len([*WELL_KNOWN]) > 80; "
        "print(*sys.modules); WELL_KNOWN['HeadraceParseYoloX']; print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    before, after = (set(line.split()) for line in done.stdout.splitlines())
    room = "headrace.infer.parsers."
    heads = {f"{room}{name}" for name in ("yolo", "rows", "ssd_detr", "segmentation", "catalogue")}
    assert not heads & before
    assert heads & after == {f"{room}yolo"}
