"""Explanations of every kind of model, as objects, text, JSON and pages."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace
from headrace._core.errors import ConfigError, MediaError
from headrace.diagnose.explain import FrameExplanation, explain, records
from headrace.diagnose.explain.gather import tensor_stats
from headrace.infer.inferencer import Inferencer
from headrace.media import ArraySource
from headrace.meta import Detections
from tests.infer.scenes import classifier, image
from tests.infer.tally.test_box_losses import ROWS, detector
from tests.infer.test_inferencer_segmentation import HALVES, semantic, softmax_model
from tests.media.conftest import write_clip
from tests.media.sources.videos import turned

Config = Callable[..., Path]
IMAGE = np.full((64, 64, 3), 60, np.uint8)


def test_the_steps_of_a_detector(tmp_path: Path) -> None:
    with detector(tmp_path) as model:
        found = headrace.explain(model, IMAGE)
        plain = model(IMAGE)
    (one,) = found.data.models
    assert (one.kind, one.items, one.objects) == ("detector", 1, len(plain.objects))
    assert one.verdict == "3 objects"
    rows = {c.label: (c.candidates, c.threshold, c.cluster, c.topk, c.objects) for c in one.classes}
    assert rows == {"car": (3, 3, 2, 2, 2), "person": (1, 1, 1, 1, 1)}
    assert [tensor.name for tensor in (*one.inputs, *one.outputs)] == ["image", "out"]
    assert one.inputs[0].minimum == one.inputs[0].maximum == 60
    assert one.dropped == ()
    assert repr(found) == "Explanation(frame 0 of arrays: config.txt: 3 objects)"


def test_the_text_has_the_figures(tmp_path: Path) -> None:
    with detector(tmp_path, "detected-min-h=15") as model:
        text = explain(model, IMAGE, at=(44, 20)).summary()
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert lines[0] == "frame 0 of arrays, 64x64"
    assert "class candidates threshold cluster topk objects" in lines
    assert "all 4 4 3 3 1" in lines
    assert any(
        line.startswith("the best candidate at 44,20 is car 0.7 at 38,16 12x8: 8 pixels high")
        for line in lines
    )


def test_json_reads_back_as_it_was(tmp_path: Path) -> None:
    with detector(tmp_path, "topk=1") as model:
        found = explain(model, IMAGE, box=(38, 16, 12, 8))
    assert FrameExplanation.from_json(found.to_json()) == found.data
    assert json.loads(found.to_json()) == json.loads(json.dumps(found.to_dict()))
    (one,) = found.data.models
    assert one.place is not None
    assert "number 2 by score of its class, topk=1 (config.txt:" in one.place.sentence


def test_a_page_needs_nothing_from_outside_and_escapes_labels(tmp_path: Path) -> None:
    with detector(tmp_path, "topk=1") as model:
        (tmp_path / "labels.txt").write_text("<script>alert(1)</script>\nb\n")
        hostile = explain(str(tmp_path / "config.txt"), IMAGE, at=(44, 20))
        page = hostile.to_html()
        assert model.labels == ("car", "person")
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    addresses = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert addresses
    assert all(one.startswith(("data:image/webp;base64,", "#model")) for one in addresses)
    assert re.search(r"url\(|@import", page) is None
    assert page.count("<rect") == 3  # two objects and one that was dropped
    assert hostile._repr_html_().startswith('<iframe srcdoc="&lt;!DOCTYPE html&gt;')


@pytest.mark.parametrize(
    ("at", "sentence"),
    [
        ((20, 20), "the best candidate at 20,20 is car 0.9 at 15,10 10x20: becomes object 0"),
        ((25.5, 20), "the best candidate at 25.5,20 is car 0.9 at 15,10 10x20: becomes object 0"),
        ((60, 5), "no candidate of at least 0.01 is at 60,5: the model sees nothing there"),
    ],
)
def test_a_point(tmp_path: Path, at: tuple[float, float], sentence: str) -> None:
    """The second is covered by a double alone: the better box is its answer."""
    with detector(tmp_path) as model:
        (one,) = explain(model, IMAGE, at=at).data.models
    assert one.place is not None
    assert one.place.sentence.startswith(sentence)


def test_a_hidden_double_says_what_would_drop_it_next(tmp_path: Path) -> None:
    rows = [ROWS[0], (21, 20, 10, 20, 1, 0.3, 0), (44, 20, 12, 8, 1, 0.2, 0)]
    with detector(tmp_path, rows=rows) as model:
        (one,) = explain(model, IMAGE, box=(16, 10, 10, 20)).data.models
    assert [(x.score, x.telling) for x in one.dropped] == [(pytest.approx(0.2), True)]
    assert one.verdict.startswith("1 object, 1 more candidate dropped: car 0.2 at 38,16 12x8")
    assert one.place is not None
    assert one.place.history[0].next is None or "double" in one.place.history[0].next.text


@pytest.mark.parametrize(
    ("keywords", "error", "text"),
    [
        ({"at": (70, 3)}, ConfigError, "70,3 lies outside of the frame"),
        ({"at": (1, 1), "box": (1, 1, 2, 2)}, ConfigError, "a point and a box"),
        ({"box": (1, 1, 0, 2)}, ConfigError, "a box of 0x2 pixels"),
        ({"at": (float("nan"), 1)}, ConfigError, "is no place"),
        ({"floor": 0}, ConfigError, "floor=0"),
        ({"frame": 3}, MediaError, "there is no frame 3"),
    ],
)
def test_questions_that_have_no_answer(
    tmp_path: Path, keywords: dict[str, Any], error: type[Exception], text: str
) -> None:
    with detector(tmp_path) as model, pytest.raises(error, match=re.escape(text)):
        explain(model, IMAGE, **keywords)


def test_a_later_frame_and_the_keys_that_skip_it(tmp_path: Path) -> None:
    with detector(tmp_path, interval=3) as model:
        source = ArraySource([IMAGE + n for n in range(9)])
        found = explain(model, source, frame=2)
        (one,) = found.data.models
        assert one.inputs[0].mean == 62
        assert one.reasons == (
            "interval=3: a run infers on every 4 frames and not on frame 2; it is inferred here "
            "all the same",
        )


def test_what_the_source_says_is_among_the_notices(tmp_path: Path) -> None:
    path = turned(write_clip(tmp_path / "v.mp4", 3))
    with detector(tmp_path) as model:
        found = explain(model, str(path))
    assert "rotation-ignored" in [notice.code for notice in found.notices]


def test_a_classifier_behind_a_detector(mean_config: Config, tmp_path: Path) -> None:
    config = classifier(mean_config, classifier_threshold=0.3)
    (tmp_path / "first").mkdir()
    with detector(tmp_path / "first") as model, Inferencer.from_config(config) as second:
        pixels = IMAGE.copy()
        pixels[:, 32:, 2] = pixels[45:, :, 2] = 200
        found = explain([model, second], pixels, at=(20, 20))
        page = found.to_html()
    one = found.data.models[1]
    assert (one.items, one.secondary) == (3, True)
    assert one.verdict.startswith("2 of 3 items with a result: no label: score 0.235 <= ")
    first = one.results[0]
    assert [score.label for score in first.classes] == ["red", "green", "blue"]
    assert first.verdict is not None
    assert first.verdict.key == "classifier-threshold"
    assert one.place is not None
    assert one.place.sentence == (
        "object 0: no label: score 0.235 <= classifier-threshold=0.3 (config.txt:8): set 0.23"
    )
    assert page.count("Input of the network for object") == 3


def test_a_class_map(tmp_path: Path) -> None:
    softmax_model(tmp_path)
    with Inferencer.from_config(semantic(tmp_path)) as model:
        found = explain(model, image(HALVES, size=(64, 64)), at=(10, 10))
        (one,) = found.data.models
        page = found.to_html()
    assert "Class of each pixel" in page
    assert "background:rgb(255, 59, 48)" in page
    assert one.verdict == "red 50 %, blue 37.5 %, no class 12.5 %"
    shares = {share.label: share.score for share in one.results[0].classes}
    assert shares == {"red": 0.5, "blue": 0.375, "no class": 0.125}
    assert one.place is not None
    assert one.place.sentence == "the class there is red"
    with Inferencer.from_config(semantic(tmp_path, segmentation_threshold=1.5)) as model:
        (one,) = explain(model, image(HALVES, size=(64, 64)), at=(10, 10)).data.models
    assert "segmentation-threshold=1.5" in one.verdict
    assert one.place is not None
    assert one.place.sentence == "no class there is above segmentation-threshold=1.5"


def test_statistics_leave_out_what_is_not_finite() -> None:
    found = tensor_stats("x", np.array([1, 3, np.nan, np.inf, -np.inf], np.float32))
    assert (found.minimum, found.maximum, found.mean, found.std) == (1, 3, 2, 1)
    assert (found.nan, found.infinite) == (1, 2)
    empty = tensor_stats("y", np.empty((0, 4), np.int32))
    assert (empty.minimum, empty.shape, empty.dtype) == (None, (0, 4), "int32")


@pytest.mark.filterwarnings("ignore::headrace.HeadraceWarning")
def test_a_network_whose_outputs_stay_tensors(mean_config: Config) -> None:
    config = mean_config(network_type=100, custom_lib_path=None, parse_bbox_func_name=None)
    found = explain(config, IMAGE)
    assert found.data.models[0].verdict == "outputs read by nothing here: network-type=100"
    assert any("nobody reads the outputs" in notice.sentence for notice in found.notices)
    assert found.data.models[0].outputs[0].shape == (3,)


def test_a_pipeline_file_without_its_tracker_and_outputs(
    mean_config: Config, photos: Path, tmp_path: Path
) -> None:
    mean_config()
    path = tmp_path / "pipeline.yml"
    path.write_text(
        "sources: [photos, photos]\nmodels: config.txt\ntracker: iou\nsinks: [out/found.jsonl]\n"
    )
    found = explain(path, frame=1)
    assert (found.data.frame, found.data.width) == (1, 64)
    assert found.data.models[0].objects == 1
    texts = [notice.sentence for notice in found.notices]
    assert "frames are of the first of 2 sources" in texts
    assert any(text.startswith("each frame stands alone") for text in texts)
    assert not (tmp_path / "out").exists()


def test_an_asynchronous_classifier_behind_a_tracker_is_looked_at(
    mean_config: Config, photos: Path, tmp_path: Path
) -> None:
    (tmp_path / "first").mkdir()
    with detector(tmp_path / "first"):
        pass
    second = classifier(mean_config, classifier_async_mode=1, input_object_min_width=1)
    path = tmp_path / "pipeline.yml"
    text = f"sources: photos\nmodels: [first/config.txt, {second.name}]\n"
    path.write_text(text)
    assert explain(path).data.models[1].skipped[0].verdict.key == "tracker"
    path.write_text(f"{text}tracker: iou\n")
    assert len(explain(path).data.models[1].results) == 3


@pytest.mark.slow
@pytest.mark.data
def test_a_real_detector_on_a_photo(data_dir: Path, tmp_path: Path) -> None:
    """A person at the left edge is just below the threshold."""
    model = tmp_path / "yolox_nano.onnx"
    shutil.copy(data_dir / "models" / model.name, model)  # its engine is saved beside it
    (one,) = explain(model, str(data_dir / "images" / "bus.jpg"), at=(40, 800)).data.models
    assert one.objects == 4
    assert one.findings == ()
    assert one.place is not None
    person = one.place.history[0]
    assert (person.label, person.verdict.key) == ("person", "pre-cluster-threshold")
    assert person.verdict.fix == "set 0.25"
    (again,) = explain(model, str(data_dir / "images" / "bus.jpg"), conf=0.25).data.models
    assert again.objects == 5


def test_numbers_that_are_none_do_not_spoil_the_json(tmp_path: Path) -> None:
    """The parser is a function of the program, whose boxes are not mended."""
    odd = [[5, 5, 9, 9], [np.nan, 1, 9, 9], [1, 1, np.inf, 9], [30, 30, 9, 9]]

    def parse(layers: Any, network: Any, params: Any) -> Detections:
        return Detections(odd, [np.nan, 0.9, 0.9, 0.8], [0, 0, 1, 1])

    with detector(tmp_path, "topk=1", parser=parse) as model:
        found = explain(model, IMAGE, at=(8, 8))
    json.loads(found.to_json(), parse_constant=pytest.fail)
    assert found.to_html().startswith("<!DOCTYPE html>")


def test_a_model_that_ran_before_is_explained_by_this_frame_alone(tmp_path: Path) -> None:
    with detector(tmp_path, "detected-min-h=15") as model:
        first = explain(model, IMAGE)
        model([IMAGE] * 5)
        assert explain(model, IMAGE).data == first.data


def test_the_page_of_formats_has_every_field() -> None:
    page = (Path(__file__).parents[3] / "docs" / "formats.md").read_text()
    section = page.split("## Explanation of a frame")[1].split("\n## ")[0]
    kinds = (
        *(records.FrameExplanation, records.ModelExplanation, records.CandidateFate),
        *(records.Verdict, records.ClassStages, records.SkippedObject, records.ItemResult),
        *(records.ClassScore, records.TensorStats, records.PlaceAnswer),
    )
    names = {name for kind in kinds for name in kind.__struct_fields__}
    assert {name for name in names if f"`{name}`" not in section} == set()
