"""The demo scene's models, clip and configs: true accuracy on videos nobody trained on."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import av
import numpy as np
import onnx
import onnxruntime
import pytest
from conveyor_parser import parse_conveyor
from conveyor_scene import ALPHABET, CLASSES, CODE_LENGTH, HEIGHT, WIDTH, Scene, Truth
from conveyor_training.videos import (
    TEST_SEEDS,
    TRAIN_SEEDS,
    VALIDATION_SEEDS,
    resample,
)
from faster_coco_eval import COCO, COCOeval_faster

from headrace.config import ModelConfig
from headrace.infer.geometry import Rect
from headrace.infer.inferencer import Inferencer
from headrace.infer.preprocess import Preprocessor
from headrace.media import open_source
from headrace.media.frame import Frame
from headrace.media.pixel_format import PixelFormat
from headrace.meta import DetectionParams, FrameMeta, Layer, NetworkInfo

FOLDER = Path(__file__).parents[2] / "examples" / "conveyor"
SEEDS = range(300, 308)
FRAMES_PER_SEED = 15


@dataclass
class Seen:
    """One rendered frame, what is true of it, and what the detector said."""

    frame: Frame
    truths: list[Truth]
    found: FrameMeta


@pytest.fixture(scope="module")
def scene_copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scene's files where engines may be saved."""
    target = tmp_path_factory.mktemp("conveyor")
    for item in FOLDER.iterdir():
        if item.is_file() and item.suffix != ".engine":
            shutil.copy(item, target)
    return target


@pytest.fixture(scope="module")
def seen(scene_copy: Path) -> list[Seen]:
    results = []
    detector = Inferencer.from_config(scene_copy / "config_infer_primary.txt", threads=1)
    for seed in SEEDS:
        scene = Scene(seed)
        for t in range(10, 10 + 10 * FRAMES_PER_SEED, 10):
            image, truths = scene.frame(t)
            frame = Frame.from_array(image, PixelFormat.RGB)
            results.append(Seen(frame, truths, detector.process([frame])[0]))
    return results


def _average_precision(
    truths: list[dict[str, object]], found: Iterable[tuple[int, FrameMeta]], images: int
) -> dict[str, float]:
    """COCO's numbers; truths are COCO annotations, `found` are (image id, detections)."""
    results = [
        {
            "image_id": image,
            "category_id": o.class_id + 1,
            "bbox": [o.left, o.top, o.width, o.height],
            "score": float(o.confidence),
        }
        for image, meta in found
        for o in meta.objects
    ]
    dataset = COCO(
        {
            "images": [{"id": i + 1, "width": WIDTH, "height": HEIGHT} for i in range(images)],
            "annotations": truths,
            "categories": [{"id": i + 1, "name": name} for i, name in enumerate(CLASSES)],
        }
    )
    evaluation = COCOeval_faster(dataset, dataset.loadRes(results), "bbox")
    evaluation.evaluate()
    evaluation.accumulate()
    evaluation.summarize()
    return dict(evaluation.stats_as_dict)


@pytest.mark.slow
def test_detector_finds_parcels_of_unseen_seeds(seen: list[Seen]) -> None:
    truths: list[dict[str, object]] = []
    for image, item in enumerate(seen):
        for truth in item.truths:
            truths.append(
                {
                    "id": len(truths) + 1,
                    "image_id": image + 1,
                    "category_id": truth.class_id + 1,
                    "bbox": list(truth.box),
                    "area": truth.box[2] * truth.box[3],
                    "iscrowd": int(truth.ignored),
                }
            )
    assert len(seen) == 120
    assert len(truths) > 600
    stats = _average_precision(truths, ((i + 1, s.found) for i, s in enumerate(seen)), len(seen))
    assert stats["AP_50"] >= 0.95
    assert stats["AP_all"] >= 0.85
    assert {o.label for s in seen for o in s.found.objects} == set(CLASSES)


@pytest.mark.slow
def test_detector_finds_parcels_in_the_clip(scene_copy: Path) -> None:
    document = json.loads((FOLDER / "truth.json").read_text())
    detector = Inferencer.from_config(scene_copy / "config_infer_primary.txt", threads=1)
    found = []
    with open_source(str(FOLDER / "conveyor.mp4")) as source:
        for i, frame in enumerate(source):
            if i % 5 == 0:
                found.append((i + 1, detector.process([frame])[0]))
    asked = {image for image, _ in found}
    truths = [a for a in document["annotations"] if a["image_id"] in asked]
    stats = _average_precision(truths, found, len(document["images"]))
    assert len(found) == 50
    assert stats["AP_50"] >= 0.95


@pytest.mark.slow
def test_reader_reads_the_codes_of_found_parcels(seen: list[Seen]) -> None:
    config = ModelConfig.load(FOLDER / "config_infer_secondary_characters.txt")
    assert config.infer_dims is not None
    channels, height, width = config.infer_dims
    prepare = Preprocessor.from_config(config, width, height, channels)
    session = onnxruntime.InferenceSession(str(config.onnx_file))
    labels = [line.split(";") for line in (FOLDER / "labels_characters.txt").read_text().split()]
    assert labels == [list(ALPHABET)] * CODE_LENGTH
    right = asked = 0
    for item in seen[::2]:
        for truth in item.truths:
            box = _best_match(item.found, truth)
            if not truth.readable or box is None:
                continue
            crop = np.empty((1, channels, height, width), np.float32)
            prepare(item.frame, crop[0], box)
            outputs = session.run(None, {"parcel": crop})
            code = "".join(labels[i][int(p[0].argmax())] for i, p in enumerate(outputs))
            right += sum(a == b for a, b in zip(code, truth.code, strict=True))
            asked += CODE_LENGTH
    assert asked > 400
    assert right / asked >= 0.98


def _best_match(found: FrameMeta, truth: Truth) -> Rect | None:
    left, top, width, height = truth.box
    for o in found.objects:
        w = min(left + width, o.left + o.width) - max(left, o.left)
        h = min(top + height, o.top + o.height) - max(top, o.top)
        if o.label == truth.label and min(w, h) > 0 and w * h > 0.7 * width * height:
            return Rect(o.left, o.top, o.width, o.height)
    return None


def test_reader_is_unsure_without_a_label() -> None:
    """A blank crop: the threshold of the config must refuse to read it."""
    config = ModelConfig.load(FOLDER / "config_infer_secondary_characters.txt")
    session = onnxruntime.InferenceSession(str(config.onnx_file))
    outputs = session.run(None, {"parcel": np.full((1, 1, 96, 128), 0.25, np.float32)})
    assert max(float(p.max()) for p in outputs) < config.classifier_threshold


def test_test_seeds_were_never_trained_on() -> None:
    clip = json.loads((FOLDER / "truth.json").read_text())["info"]["seed"]
    assert {*SEEDS, clip} <= set(TEST_SEEDS)
    assert not set(TEST_SEEDS) & (set(VALIDATION_SEEDS) | set(TRAIN_SEEDS))


def test_models_are_small_plain_and_have_a_dynamic_batch() -> None:
    paths = [FOLDER / "detector.onnx", FOLDER / "classifier.onnx"]
    assert sum(path.stat().st_size for path in paths) < 1_000_000
    for path in paths:
        model = onnx.load(path)
        onnx.checker.check_model(model, full_check=True)
        assert [(o.domain, o.version) for o in model.opset_import] == [("", 17)]
        for value in (*model.graph.input, *model.graph.output):
            assert value.type.tensor_type.shape.dim[0].dim_param == "batch"
        session = onnxruntime.InferenceSession(str(path))
        shape = [3, *session.get_inputs()[0].shape[1:]]
        x = np.random.default_rng(0).random(shape, np.float32)
        whole = session.run(None, {session.get_inputs()[0].name: x})
        single = session.run(None, {session.get_inputs()[0].name: x[1:2]})
        for a, b in zip(whole, single, strict=True):
            np.testing.assert_allclose(a[1:2], b, rtol=1e-3, atol=1e-4)


def test_configs_load_and_name_files_that_exist() -> None:
    for name in ("config_infer_primary.txt", "config_infer_secondary_characters.txt"):
        config = ModelConfig.load(FOLDER / name)
        assert config.onnx_file is not None
        assert config.onnx_file.is_file()
        assert config.labelfile_path is not None
        assert config.labelfile_path.is_file()
    assert (FOLDER / "labels.txt").read_text().split() == list(CLASSES)


@pytest.mark.slow
def test_clip_is_ten_seconds_of_h264_and_shows_its_truth() -> None:
    clip = FOLDER / "conveyor.mp4"
    assert clip.stat().st_size < 1_200_000
    document = json.loads((FOLDER / "truth.json").read_text())
    with av.open(clip) as file:
        stream = file.streams.video[0]
        assert stream.codec_context.name == "h264"
        assert (stream.width, stream.height) == (WIDTH, HEIGHT)
        assert float(stream.duration * stream.time_base) == pytest.approx(10.0)
        frames = [f.to_ndarray(format="rgb24") for f in file.decode(stream)]
    assert len(frames) == len(document["images"]) == 250
    scene, first = Scene(document["info"]["seed"]), document["info"]["first_frame"]
    for i in (0, 130, 249):
        image, truths = scene.frame(first + i)
        assert np.abs(image.astype(int) - frames[i]).mean() < 8
        noted = [a for a in document["annotations"] if a["image_id"] == i + 1]
        assert [(a["track_id"], a["code"], tuple(a["bbox"])) for a in noted] == [
            (t.parcel, t.code, t.box) for t in truths
        ]


def test_parser_turns_cells_into_boxes() -> None:
    logits = np.full((2, 3, 5), -6.0, np.float32)
    logits[1, 2, 3] = 2.0  # cell centre (3.5, 2.5) cells of 8 pixels
    logits[0, 0, 0] = 0.0  # exactly at its threshold: kept
    distances = np.zeros((4, 3, 5), np.float32)
    distances[:, 2, 3] = np.log([1.0, 1.5, 1.25, 0.25])
    layers = {"scores": Layer("scores", logits), "distances": Layer("distances", distances)}
    params = DetectionParams(2, np.array([0.5, 0.6], np.float32))
    found = parse_conveyor(layers, NetworkInfo(40, 24, 3), params)
    assert found.class_ids.tolist() == [0, 1]
    np.testing.assert_allclose(found.scores, [0.5, 1 / (1 + np.exp(-2.0))], rtol=1e-6)
    np.testing.assert_allclose(found.boxes, [[0, 0, 12, 12], [20, 8, 18, 14]], rtol=1e-5)
    params = DetectionParams(2, np.array([0.51, 0.99], np.float32))
    assert len(parse_conveyor(layers, NetworkInfo(40, 24, 3), params)) == 0


@pytest.mark.parametrize(
    "box",
    [
        pytest.param((0, 0, 640, 384), marks=pytest.mark.slow),
        (102, 56, 150, 118),
        pytest.param((560, 300, 80, 84), marks=pytest.mark.slow),
    ],
)
@pytest.mark.slow
def test_training_scales_images_as_the_config_does(box: tuple[int, int, int, int]) -> None:
    config = ModelConfig.load(FOLDER / "config_infer_primary.txt")
    config = config.with_overrides(maintain_aspect_ratio=False)
    image, _ = Scene(3).frame(40)
    out = np.empty((3, 192, 320), np.float32)
    prepare = Preprocessor.from_config(config, 320, 192, 3)
    prepare(Frame.from_array(image, PixelFormat.RGB), out, Rect(*box))
    trained_on = resample(image, box, 320, 192).astype(np.float32).transpose(2, 0, 1)
    inner = np.abs(out * 255 - trained_on)[:, 2:-2, 2:-2]
    assert inner.max() <= 1.01
