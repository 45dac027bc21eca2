"""Recorded tensors give the recorded objects again, whoever parses them."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace import ModelConfig
from headrace._core.errors import ConfigError, MediaError
from headrace._core.findings import Finding
from headrace.diagnose.recordings import record, record_frames
from headrace.infer.inferencer import Inferencer
from headrace.infer.recordings import (
    RecordingSink,
    assert_same_objects,
    load_recording,
    replay_recording,
)
from headrace.infer.recordings.safetensors import SafetensorsWriter
from headrace.media import ArraySource
from headrace.meta import Detections, Segmentation
from tests.custom.conftest import compile_parser, zoo28  # noqa: F401 - fixtures
from tests.infer.models import write_config
from tests.infer.recordings.scenes import noise, recorded, rows_config
from tests.infer.scenes import batch_of, classifier, image
from tests.infer.test_inferencer_segmentation import (
    HALVES,
    instance_model,
    semantic,
    softmax_model,
)
from tests.profiles import examples

Config = Callable[..., Path]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> list[Path]:
    """Configs of a built-in head, a parser in Python and one in C++."""
    base = tmp_path_factory.mktemp("rows")
    library = request.getfixturevalue("zoo28")
    cpp = {"custom_lib_path": library, "parse_bbox_func_name": "ParseByGrowth", "abi": 28}
    return [
        rows_config(base / "builtin"),
        rows_config(base / "python", custom_lib_path="parser.py"),
        rows_config(base / "cpp", **cpp),
    ]


@pytest.mark.parametrize("kind", [0, 1, 2])
@pytest.mark.sampled
def test_a_replay_gives_the_recorded_objects(folders: list[Path], kind: int) -> None:
    config = folders[kind]
    out = config.with_name("r.safetensors")
    with Inferencer.from_config(config, guard="never") as model:

        @settings(max_examples=examples(8), deadline=None, suppress_health_check=list(HealthCheck))
        @given(st.lists(st.integers(0, 10**6), min_size=1, max_size=3))
        def same(seeds: list[int]) -> None:
            recording = recorded(model, out, *seeds)
            assert [item.frame for item in recording] == list(range(len(seeds)))
            configs = [] if kind == 0 else [model.config]
            done = list(replay_recording(recording, configs, guard="never"))
            assert len(done) == len(seeds)
            for one, seed in zip(done, seeds, strict=True):
                assert one.difference is None
                assert isinstance(one.result, Detections)
                objects = one.item.objects
                assert objects is not None
                np.testing.assert_array_equal(one.result.boxes, objects.boxes)
                np.testing.assert_array_equal(one.result.scores, objects.scores)
                found = model(noise(seed)).objects
                order = np.argsort(found.confidences)
                np.testing.assert_array_equal(found.confidences[order], np.sort(objects.scores))
                assert len(objects)

        same()


def test_a_library_is_guarded_as_in_a_run(folders: list[Path]) -> None:
    config = folders[2]
    with Inferencer.from_config(config, guard="never") as model:
        recording = recorded(model, config.with_name("g.safetensors"), 1, 2)
    said: list[Finding] = []
    done = list(replay_recording(recording, [model.config], guard="always", notices=said))
    assert [one.difference for one in done] == [None, None]
    crash = replay_recording(
        recording, [model.config], guard="always", function="ParseThrow", notices=said
    )
    assert all("the parser refused" in str(one.difference) for one in crash)


def test_a_full_disk_and_a_removed_folder_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = rows_config(tmp_path / "a")
    out = tmp_path / "out" / "r.safetensors"
    with Inferencer.from_config(config) as model:
        sink = RecordingSink(out, [model])
        frame = image([], size=(16, 42))
        sink.write(frame, model(frame))
        shutil.rmtree(out.parent)
        with pytest.raises(MediaError, match=r"its folder .*out was removed"):
            sink.close()

        def full(*_: object, **__: object) -> None:
            raise OSError(errno.ENOSPC, "full")

        monkeypatch.setattr(SafetensorsWriter, "add", full)
        with pytest.raises(MediaError, match="the disk is full: frame 0 could not be written"):
            recorded(model, out, 1)
    assert list(out.parent.iterdir()) == []


def test_no_model_is_needed_and_a_library_is_never_taken_from_the_file(tmp_path: Path) -> None:
    config = rows_config(tmp_path / "a", custom_lib_path="parser.py")
    report = record(config, noise(1), tmp_path / "r.safetensors")
    assert (report.frames, report.items) == (1, 1)
    assert report.objects > 1
    for file in config.parent.glob("rows.onnx*"):
        file.unlink()
    recording = load_recording(report.path)
    with pytest.raises(ConfigError, match=r"were parsed by parse in parser\.py"):
        list(replay_recording(recording))
    library = {"custom_lib": config.with_name("parser.py"), "function": "parse"}
    of_config: dict[str, Any] = {"configs": [ModelConfig.load(config)]}
    for arguments in (of_config, library):
        (done,) = replay_recording(recording, **arguments)
        assert done.difference is None


def test_a_difference_names_both_boxes(tmp_path: Path) -> None:
    config = rows_config(tmp_path / "a")
    with Inferencer.from_config(config) as model:
        recording = recorded(model, tmp_path / "r.safetensors", 5)
    cfg = ModelConfig.load(config).with_overrides(cluster_mode=4)
    (done,) = replay_recording(recording, [cfg])
    assert done.difference is not None
    assert "objects were recorded" in done.difference
    assert "is new" in done.difference
    item = recording[0]
    assert item.parsed is not None
    assert_same_objects(item.parsed, item)
    moved = item.parsed.select(np.arange(len(item.parsed)))
    moved.boxes = moved.boxes + np.float32([3, 0, 0, 0])
    with pytest.raises(AssertionError, match=r"(?s)frame 0 .* is now .*\n  - .*\n  \+ "):
        assert_same_objects(moved, item)


def test_masks_are_kept(tmp_path: Path) -> None:
    instance_model(tmp_path)
    keys = {"network_type": 3, "cluster_mode": 4, "num_detected_classes": 1}
    config = write_config(
        tmp_path, onnx_file="m.onnx", labelfile_path="labels.txt", custom_lib_path="parser.py",
        parse_bbox_instance_mask_func_name="parse", output_instance_mask=1, **keys,
    )  # fmt: skip
    report = record(config, np.full((16, 16, 3), 200, np.uint8), tmp_path / "r.safetensors")
    (done,) = replay_recording(load_recording(report.path), [ModelConfig.load(config)])
    assert done.difference is None
    assert done.item.objects is not None
    assert done.item.objects.masks
    assert done.item.objects.masks[0].shape == (4, 2)


def test_keypoints_are_kept_and_compared(tmp_path: Path) -> None:
    config = rows_config(tmp_path, custom_lib_path="parser.py")
    parser = config.with_name("parser.py")
    code = parser.read_text()
    returned = "rows[:, 0].astype(int))"
    points = "rows[:, 0].astype(int), keypoints=rows[:, None, [1, 2, 5]]{shift})"
    parser.write_text(code.replace(returned, points.format(shift="")))
    recording = load_recording(record(config, noise(1), tmp_path / "r.safetensors").path)
    cfg = ModelConfig.load(config)
    (done,) = replay_recording(recording, [cfg])
    assert done.difference is None
    assert done.item.objects is not None
    assert done.item.objects.keypoints is not None
    assert done.item.objects.keypoints.shape[1:] == (1, 3)
    parser.write_text(code.replace(returned, points.format(shift=" + 1")))
    (done,) = replay_recording(recording, [cfg])
    assert "first difference" in str(done.difference)
    parser.write_text(code)
    (done,) = replay_recording(recording, [cfg])
    assert done.difference == "only the recording has keypoints"


def test_a_class_map_is_compared_by_pixel(tmp_path: Path) -> None:
    softmax_model(tmp_path)
    report = record(semantic(tmp_path), image(HALVES, size=(64, 64)), tmp_path / "r.safetensors")
    recording = load_recording(report.path)
    (done,) = replay_recording(recording)
    assert done.difference is None
    assert isinstance(done.result, Segmentation)
    assert (done.result.class_map[:, :8] == 0).all()
    stricter = ModelConfig.load(semantic(tmp_path, segmentation_threshold=0.999))
    (done,) = replay_recording(recording, [stricter])
    assert "pixels have another class; first difference: " in str(done.difference)


def test_a_secondary_classifier_keeps_each_object_with_its_box(
    mean_config: Config, tmp_path: Path
) -> None:
    config = classifier(mean_config)
    patches = [("red", (10, 10, 40, 80)), ("green", (60, 10, 20, 30))]
    meta = batch_of([patches]).metas[0]
    out = tmp_path / "r.safetensors"
    with Inferencer.from_config(config) as model, RecordingSink(out, [model]) as sink:
        frame = image(patches)
        sink.write(frame, model(frame, meta))
    recording = load_recording(out)
    assert [tuple(item.parent or ()) for item in recording] == [box for _, box in patches]
    assert [item.object for item in recording] == [0, 1]
    assert recording.of(2) == list(recording)
    done = list(replay_recording(recording))
    assert [one.difference for one in done] == [None, None]
    assert [getattr(one.result, "text", "") for one in done] == ["red ", "green "]


def test_a_failed_run_leaves_no_file(tmp_path: Path) -> None:
    config = rows_config(tmp_path / "a")
    with Inferencer.from_config(config) as model:
        with pytest.raises(MediaError, match="the source has 1 frames"):
            record_frames([model], ArraySource([noise(1)]), tmp_path / "r.st", frames=[0, 7])
        assert model.runs.on_steps is None
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a"]
