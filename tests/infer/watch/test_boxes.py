"""Rules on boxes and scores, on boxes made by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.config import ModelConfig
from headrace.infer.watch.boxes import BoxWatch
from headrace.meta import Detections, FrameMeta, NetworkInfo

NETWORK = NetworkInfo(100, 80, 3)
META = FrameMeta("test", 0, 0, 0, 640, 480)


@pytest.fixture(scope="module")
def configs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ModelConfig]:
    folder = tmp_path_factory.mktemp("boxes")

    def load(name: str, text: str) -> ModelConfig:
        path = folder / f"{name}.txt"
        path.write_text(f"[property]\ngie-unique-id=1\nnum-detected-classes=3\n{text}")
        return ModelConfig.load(path)

    return {
        "nms": load("nms", "cluster-mode=2\n[class-attrs-all]\nnms-iou-threshold=0.5\n"),
        "loose": load("loose", "cluster-mode=2\n[class-attrs-all]\nnms-iou-threshold=1\n"),
        "none": load("none", "cluster-mode=4\n"),
        "hidden": load("hidden", "cluster-mode=2\nfilter-out-class-ids=0\n"),
        "secondary": load("secondary", "process-mode=2\noperate-on-gie-id=1\n"),
    }


def some(count: int, seed: int = 0) -> np.ndarray:
    """Boxes inside the network input that overlap little."""
    rng = np.random.default_rng(seed)
    corner = np.stack([np.arange(count) * 7 % 84, np.arange(count) * 11 % 64], 1)
    return np.concatenate([corner, rng.uniform(5, 14, (count, 2))], 1).astype(np.float32)


def looked(
    cfg: ModelConfig,
    boxes: np.ndarray,
    scores: object = None,
    classes: object = 1,
    *,
    frames: int = 6,
    final: bool = False,
    labels: tuple[str, ...] = (),
) -> dict[str, str]:
    """Findings after as many frames with these boxes, which clustering leaves as they are."""
    watch = BoxWatch(cfg, NETWORK, labels=labels)
    for _ in range(frames):
        values = np.linspace(0.3, 0.9, len(boxes)) if scores is None else scores
        found = Detections(
            boxes, np.broadcast_to(values, len(boxes)), np.broadcast_to(classes, len(boxes))
        )
        watch.look(found, found, len(found), META)
    return {f.code: f.sentence for f in watch.findings(final=final)}


def test_sensible_boxes_say_nothing(configs: dict[str, ModelConfig]) -> None:
    for name, cfg in configs.items():
        assert looked(cfg, some(1), frames=50, final=True) == {}, name
        assert looked(cfg, some(12), frames=50, final=True) == {}, name


@given(st.integers(0, 40), st.integers(0, 1000), st.floats(0.1, 1))
def test_boxes_inside_with_any_probability_say_nothing(count: int, seed: int, top: float) -> None:
    cfg = ModelConfig.load(_PLAIN)
    scores = np.random.default_rng(seed).uniform(0, top, count)
    assert looked(cfg, some(count, seed), scores, final=True) == {}


_PLAIN = Path(__file__).parents[3] / "examples" / "conveyor" / "config_infer_primary.txt"


def test_inverted_boxes(configs: dict[str, ModelConfig]) -> None:
    boxes = some(5)
    boxes[:3, 2] *= -1
    text = looked(configs["nms"], boxes)["boxes-inverted"]
    assert "18 of 30 boxes have a negative width or height" in text
    boxes = some(5)
    boxes[0, 2] *= -1  # one in five is an accident of rounding or a wild score
    assert looked(configs["nms"], boxes) == {}


def test_empty_boxes(configs: dict[str, ModelConfig]) -> None:
    boxes = some(5)
    boxes[:3] = 0  # as parsers of points leave them
    texts = looked(configs["nms"], boxes)
    assert "18 of 30 boxes have no width or no height" in texts["boxes-empty"]
    assert set(texts) == {"boxes-empty"}  # and not outside of the image
    boxes = some(5)
    boxes[0, 2] = 0
    assert looked(configs["nms"], boxes) == {}


def test_boxes_in_pixels_of_the_frame(configs: dict[str, ModelConfig]) -> None:
    boxes = some(5) * 5 + np.float32([120, 0, 0, 0])
    text = looked(configs["nms"], boxes)["boxes-outside"]
    assert "beyond the 100x80 network input" in text
    assert "they fit the frame" in text
    far = looked(configs["nms"], boxes * 100)["boxes-outside"]
    assert "decoded twice" in far


def test_boxes_as_large_as_the_input_are_odd_in_frames_alone(
    configs: dict[str, ModelConfig],
) -> None:
    boxes = np.tile(np.float32([0, 0, 100, 80]), (8, 1))
    assert "48 of 48 boxes fill the 100x80" in looked(configs["nms"], boxes)["boxes-full"]
    assert "boxes-full" not in looked(configs["secondary"], boxes)
    assert "boxes-full" not in looked(configs["nms"], boxes[:1])  # a close-up


def test_boxes_on_one_point(configs: dict[str, ModelConfig]) -> None:
    boxes = np.float32([[0.2, 0.3, 1, 2]]) * np.linspace(0.5, 1, 6, dtype=np.float32)[:, None]
    assert "36 boxes of 6 frames" in looked(configs["nms"], boxes)["boxes-on-one-point"]


def test_candidates_of_one_object_are_no_boxes_on_one_point(
    configs: dict[str, ModelConfig],
) -> None:
    one = np.float32([40, 30, 20, 16]) + np.linspace(-0.4, 0.4, 6, dtype=np.float32)[:, None]
    assert looked(configs["none"], one, frames=1, final=True) == {}
    assert "boxes-on-one-point" not in looked(configs["none"], one)


def test_boxes_on_one_point_in_one_of_many_frames_are_no_evidence(
    configs: dict[str, ModelConfig],
) -> None:
    point = np.tile(np.float32([[0.2, 0.3, 1, 2]]), (24, 1))
    empty = np.empty((0, 4), np.float32)
    watch = BoxWatch(configs["nms"], NETWORK)
    for boxes in (empty, empty, empty, point):
        found = Detections(boxes, np.linspace(0.3, 0.9, len(boxes)), np.ones(len(boxes)))
        watch.look(found, found, len(found), META)
    assert "boxes-on-one-point" not in {f.code for f in watch.findings(final=True)}


def test_scores_beyond_probabilities(configs: dict[str, ModelConfig]) -> None:
    high = looked(configs["nms"], some(4), [0.5, 0.9, 7.25, 0.4])["scores-above-1"]
    assert "6 of 24 boxes have more than 1, up to 7.25" in high
    low = looked(configs["nms"], some(4), [0.5, 0.9, -3, 0.4])["scores-below-0"]
    assert "down to -3" in low
    assert looked(configs["nms"], some(4), [0.5, 0.9, 1.0005, 0.4]) == {}  # half precision


def test_like_scores_count_all_over_the_image_alone(configs: dict[str, ModelConfig]) -> None:
    assert "all scores are 0.7: 360 boxes" in looked(configs["nms"], some(60), 0.7)["scores-alike"]
    assert looked(configs["nms"], some(3), 0.7, frames=50) == {}


def test_a_crowd_of_one_class_is_the_background(configs: dict[str, ModelConfig]) -> None:
    classes = np.zeros(400)
    classes[:8] = 2
    text = looked(configs["nms"], some(400), classes=classes)["background-class"]
    assert "class 0" in text
    assert text.endswith("filter-out-class-ids=0")
    assert looked(configs["hidden"], some(400), classes=0) == {}
    mixed = looked(configs["nms"], some(400), classes=np.arange(400) % 3)["too-many-boxes"]
    assert "about 400 objects a frame" in mixed


@pytest.mark.parametrize("name", ["background", "__background__", "Background"])
def test_a_class_that_is_called_background_needs_no_crowd(
    name: str, configs: dict[str, ModelConfig]
) -> None:
    few = looked(configs["nms"], some(30), classes=0, labels=(name, "face"))["background-class"]
    assert f"class 0 is {name!r} and no object: 180 of 180 boxes are of it" in few
    assert few.endswith("filter-out-class-ids=0")
    assert looked(configs["nms"], some(30), classes=0, labels=("face", name)) == {}
    assert looked(configs["nms"], some(5), classes=0, labels=(name, "face")) == {}
    assert looked(configs["hidden"], some(30), classes=0, labels=(name, "face")) == {}


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("none", "a guess, not tried: cluster-mode=2"),
        ("loose", "nms-iou-threshold=1 lets them through"),
    ],
)
def test_duplicates(config: str, words: str, configs: dict[str, ModelConfig]) -> None:
    boxes = np.repeat(some(3), 4, axis=0)
    text = looked(configs[config], boxes)["overlaps"]
    assert "75% of the boxes overlap" in text
    assert words in text
    other = looked(configs[config], boxes, classes=np.arange(12) % 4)
    assert "overlaps" not in other  # of other classes


def test_few_frames_prove_nothing_before_the_end(configs: dict[str, ModelConfig]) -> None:
    boxes = some(1)
    boxes[:, 2] = -5
    assert looked(configs["nms"], boxes, frames=3) == {}
    assert "boxes-inverted" in looked(configs["nms"], boxes, frames=3, final=True)
    assert "boxes-inverted" in looked(configs["nms"], boxes, frames=4)


@pytest.mark.parametrize(
    ("low", "high", "threshold", "found"),
    [
        (0.1, 0.9, 0.0, True),  # probabilities, and the key is unset
        (0.1, 0.9, 0.5, False),
        (-4.0, 4.0, 0.0, False),  # logits
        (1.0, 9.0, 0.0, False),  # no probabilities: 0.5 would not help
        (0.1, 0.3, 0.0, False),  # 0.5 would leave nothing
    ],
)
def test_masks_that_fill_their_boxes(
    low: float, high: float, threshold: float, found: bool
) -> None:
    cfg = ModelConfig(network_type=3, segmentation_threshold=threshold, num_detected_classes=3)
    watch = BoxWatch(cfg, NETWORK)
    boxes, masks = some(5), np.linspace(low, high, 5 * 100, dtype="f4").reshape(5, 10, 10)
    masks = masks[:, :, ::-1].transpose(2, 1, 0)[:5] if low < 0 else masks
    for _ in range(6):
        kept = Detections(boxes, np.full(5, 0.8), np.ones(5), masks=list(masks))
        watch.look(kept, kept, 5, META)
    told = {x.code: x.data for x in watch.findings(final=True)}
    assert ("masks-full" in told) is found
    if found:
        assert told["masks-full"]["advice"][0]["set"] == {"segmentation-threshold": "0.5"}
