"""The table of the original's tracker keys, and how keys are found in it."""

from __future__ import annotations

import pytest

from headrace.pipeline.track.original_file import read_original
from headrace.pipeline.track.original_keys import find_key, original_keys


def test_each_row_is_whole() -> None:
    values = read_original({}, "file").values
    for key in original_keys().values():
        assert key.text, key.path
        assert bool(key.to) == (key.acts in ("applied", "near") and key.name != "networkMode")
        assert not key.how or key.acts == "near", key.path
        assert not key.unset or key.acts == "no", key.path
        assert not key.to or key.section == "NvDCF" or key.to in values
        if not isinstance(key.default, list):
            assert key.read(key.default) == key.default


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("TargetManagement.probationAge", "TargetManagement.probationAge"),
        ("NvDCF.probationAge", "NvDCF.probationAge"),
        ("VisualTracker.searchRegionPaddingScale", "TargetManagement.searchRegionPaddingScale"),
        ("minMatchingScore4Overall", "DataAssociator.minMatchingScore4Overall"),
        ("batchSize", "ReID.batchSize"),
        ("SearchRegionPaddingScale", "NvDCF.SearchRegionPaddingScale"),
        ("DataAssociation.minMatchingScore4Iou", None),
        ("TargetManagement.probationage", None),
    ],
)
def test_a_key_is_found_where_generations_had_it(path: str, expected: str | None) -> None:
    key = find_key(path)
    assert (key and key.path) == expected


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("TargetManagement.probationAge", "3", 3),
        ("TargetManagement.probationAge", 3.0, 3),
        ("VisualTracker.useHog", "true", True),
        ("VisualTracker.useHog", 2, True),
        ("ReID.offsets", "1;2;3", [1.0, 2.0, 3.0]),
        ("ReID.onnxFile", None, ""),
    ],
)
def test_values_are_read_in_their_type(path: str, value: object, expected: object) -> None:
    assert original_keys()[path].read(value) == expected
