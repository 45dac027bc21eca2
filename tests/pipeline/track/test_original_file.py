"""Tracker files of the original: which keys act, and what is said of the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import ConfigError
from headrace.pipeline.track import open_tracker
from headrace.pipeline.track.original_file import presets, read_original
from headrace.pipeline.track.original_keys import find_key, original_keys
from headrace.pipeline.track.original_live import LiveValues
from headrace.pipeline.track.selection import Selection
from headrace.pipeline.track.settings_file import FileSetting, read_entries
from headrace.pipeline.track.targets import TargetFollower
from headrace.pipeline.track.tracker import TrackIds
from tests.pipeline.track.scenes import IMAGE, meta, track

FILE = """%YAML:1.0
---
BaseConfig:
  minDetectorConfidence: 0.3   # comment
TargetManagement:
  enableBboxUnClipping: 1
  preserveStreamUpdateOrder: 0
  maxTargetsPerStream: 20
  minIouDiff4NewTarget: 0.6
  minTrackerConfidence: 0.2
  probationAge: 3
  maxShadowTrackingAge: 5
  earlyTerminationAge: 2
  outputShadowTracks: 1
TrajectoryManagement:
  useUniqueID: 0
  minMatchingScore4Overall: 0.66
DataAssociator:
  associationMatcherType: 1
  checkClassMatch: 1
  minMatchingScore4Overall: 0.1
  minMatchingScore4Iou: 0.25
StateEstimator:
  stateEstimatorType: 1
  processNoiseVar4Loc: 2.5
VisualTracker:
  visualTrackerType: 1
  featureImgSizeLevel: 3
  searchRegionPaddingScale: 2
Segmenter:
  segmenterType: 1
FeatureMatching:
  matchingType: 3
"""


def entries(text: str, folder: Path) -> dict[str, FileSetting]:
    path = folder / "config_tracker.yml"
    path.write_text(text)
    return read_entries(path)


def test_each_key_sets_its_value(tmp_path: Path) -> None:
    read = read_original(entries(FILE, tmp_path), "file")
    assert read.name == "nvdcf"
    wanted = {
        "min_confidence": 0.3, "unclip": True, "max_targets": 20, "max_new_iou": 0.6,
        "min_tracker_confidence": 0.2, "probation": 3, "max_shadow": 5, "early": 2,
        "matcher": 1, "match_classes": True, "min_overall": 0.1, "rejoin_overall": 0.66,
        "min_iou": 0.25, "motion": 1, "process_loc": 2.5, "side": 24, "padding": 2.0,
    }  # fmt: skip
    assert {name: read.values[name] for name in wanted} == wanted


def test_what_has_no_effect_is_named_once(tmp_path: Path) -> None:
    without, unknown = read_original(entries(FILE, tmp_path), "file").notices
    assert (without.code, without.level) == ("tracker-settings", "warning")
    assert without.sentence == "without effect: outputShadowTracks, segmenterType"
    assert unknown.code == "tracker-key-unknown"
    assert "FeatureMatching.matchingType" in unknown.sentence


@pytest.mark.parametrize(("motion", "name"), [(0, "nviou"), (1, "nvsort")])
def test_a_mask_tracker_says_what_runs_in_its_place(tmp_path: Path, motion: int, name: str) -> None:
    text = f"Segmenter:\n  segmenterType: 1\nStateEstimator:\n  stateEstimatorType: {motion}\n"
    (notice,) = read_original(entries(text, tmp_path), "file").notices
    assert f"MaskTracker runs as {name}" in notice.sentence


@pytest.mark.parametrize("key", original_keys().values(), ids=lambda key: key.path)
def test_every_key_acts_or_is_said(key: Any) -> None:
    """A value other than the default changes the core's values, or brings a notice, or is `so`."""
    other: object = 1
    if isinstance(key.default, bool):
        other = key.path != "NvDCF.useHog" and not key.default  # which is on here
    elif isinstance(key.default, str):
        other = "other"
    elif isinstance(key.default, list):
        other = [7, 8, 9]
    elif key.default == 1:
        other = 2 if key.high >= 2 else 0
    elif key.high == 0.5:
        other = 0.25
    if key.acts == "no" and not isinstance(key.default, str | list):
        other = next(v for v in (1, 0, 2) if v not in key.unset)
    old = {"NvDCF.maxTargetsPerStream": 9, "NvDCF.useHog": 1}
    before = read_original({k: FileSetting(v, 1) for k, v in old.items()}, "file")
    if key.section != "NvDCF":
        before = read_original({}, "file")
    # of edges alone; a filter of neither has colours
    start: dict[str, object] = {}
    if key.section == "NvDCF":
        start = dict(old)
    start[key.path] = other
    after = read_original({k: FileSetting(v, 1) for k, v in start.items()}, "file")
    if key.to:
        assert after.values != before.values
        assert not after.notices
    elif key.acts == "no":
        assert any(key.name in notice.sentence for notice in after.notices)
    else:
        assert key.acts in ("so", "near")
        assert after.values == before.values
        assert not after.notices


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("nviou", "nviou"),
        ("nvsort", "nvsort"),
        ("nvdcf-max-perf", "nvdcf"),
        ("nvdcf-perf", "nvdcf"),
        ("nvdcf-accuracy", "nvdcf"),
        ("nvdeepsort", "nvdeepsort"),
    ],
)
def test_the_modules_that_are_on_name_the_tracker(name: str, kind: str) -> None:
    values = {k: FileSetting(v, 0) for k, v in presets()[name].items() if k != "text"}
    assert all(find_key(key) for key in values)
    assert read_original(values, name).name == kind
    assert open_tracker(name).name == name


def test_a_file_of_generation_5_has_one_section(tmp_path: Path) -> None:
    text = "NvDCF:\n  probationAge: 0\n  stateEstimatorType: 2\n  kfProcessNoiseVar4Vel: 3\n"
    read = read_original(entries(text + "  useGlobalMatching: 1\n", tmp_path), "file")
    assert read.name == "nvdcf"
    wanted = {"motion": 1, "process_vel": 3.0, "matcher": 2, "side": 24, "weight_age": 0.1}
    assert {name: read.values[name] for name in wanted} == wanted
    plain = read_original(entries(text + "  useTrackSmoothing: 0\n", tmp_path), "file")
    assert plain.values["motion"] == 0


def test_keys_without_a_section_are_read(tmp_path: Path) -> None:
    path = tmp_path / "tracker.yml"
    path.write_text("probationAge: 0\n")
    assert track(open_tracker(path), [meta(0, [[10, 10, 50, 50]])]) == [[1]]


def test_settings_on_the_way_win(tmp_path: Path) -> None:
    path = tmp_path / "tracker.yml"
    path.write_text("TargetManagement: {probationAge: 5}\nDataAssociator: {checkClassMatch: 1}\n")
    boxes = [meta(i, [[10, 10, 50, 50]], classes=[i % 2]) for i in range(3)]
    changed = open_tracker(path, probationAge=1, match_classes=False)
    assert track(changed, boxes) == [[None], [1], [1]]
    with pytest.raises(ConfigError, match="did you mean probationAge"):
        open_tracker(path, probatonAge=1)
    with pytest.raises(ConfigError, match="did you mean probationAge"):
        open_tracker("nvdcf-perf:probatonAge=1")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("probationAge: x", "a whole number of at least 0"),
        ("probationAge: -1", "a whole number of at least 0"),
        ("probationAge: 2.5", "a whole number of at least 0"),
        ("featureImgSizeLevel: 6", "a whole number from 1 to 5"),
        ("offsets: [1, x]", "a list of numbers"),
        ("useHog: maybe", "0 or 1"),
        ("minMatchingScore4Iou: .nan", "a number"),
        ("stateEstimatorType: 9", "from 0 to 3"),
    ],
)
def test_an_impossible_value_names_the_line(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "tracker.yml"
    path.write_text(f"%YAML:1.0\nBaseConfig:\n  minDetectorConfidence: 0\n{text}\n")
    with pytest.raises(ConfigError) as caught:
        open_tracker(path)
    assert f"{path}:4: " in str(caught.value)
    assert expected in str(caught.value)


_VALUES = st.one_of(
    st.integers(-5, 400), st.floats(-2, 400), st.booleans(), st.sampled_from(["", "a", "0.5"])
)


@given(st.dictionaries(st.sampled_from(sorted(original_keys())), _VALUES, max_size=12))
def test_any_values_are_refused_or_track(found: dict[str, Any]) -> None:
    try:
        read = read_original({k: FileSetting(v, 1) for k, v in found.items()}, "file")
    except ConfigError:
        return
    follower = TargetFollower(LiveValues(read.values), TrackIds())
    for i in range(4):
        m = meta(i, [[10, 10, 50, 50], [300, 40, 30, 60]])
        follower.step(Selection()(m.objects), 1, IMAGE, (640, 384))
        follower.pass_over(1, IMAGE, (640, 384))


def test_keys_of_a_reid_model_that_is_not_there_are_named(tmp_path: Path) -> None:
    path = tmp_path / "config_tracker.yml"
    path.write_text("ReID:\n  reidType: 1\n  modelEngineFile: mars.engine\n  batchSize: 100\n")
    (notice,) = (n for n in open_tracker(path).notices if n.code == "tracker-reid")
    assert "names no onnxFile; without effect: " in notice.sentence
    assert "modelEngineFile, batchSize" in notice.sentence


def test_a_list_of_paths_that_nothing_acts_on_is_named(tmp_path: Path) -> None:
    path = tmp_path / "tracker.yml"
    path.write_text("ObjectModelProjection:\n  cameraModelFilepath:\n    - a.yml\n    - b.yml\n")
    notices = open_tracker(path).notices
    assert any("cameraModelFilepath" in notice.sentence for notice in notices)


def test_a_value_that_nothing_acts_on_is_not_refused(tmp_path: Path) -> None:
    path = tmp_path / "tracker.yml"
    path.write_text("MultiViewAssociator: {maxPeerToPredDistance4Fusion: 1.35}\n")
    assert open_tracker(path).name == "nviou"
