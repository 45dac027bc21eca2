"""What sinks write about tracks, classifications, parents, masks and class maps."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from faster_coco_eval import mask as coco_mask
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from headrace.errors import MediaError
from headrace.media import open_sink
from headrace.media.sinks.images import frame_class_map, palette
from headrace.media.sinks.jsonl import LineWriter
from headrace.meta import (
    UNTRACKED_OBJECT_ID,
    ClassifierMeta,
    Detections,
    FrameMeta,
    LabelInfo,
    SegmentationMeta,
    Space,
)
from headrace.meta.json_forms import classifier_dicts
from headrace.meta.masks import object_mask
from tests.media.conftest import MakeMeta, gray_frame
from tests.media.sinks.test_sinks_text import file_size_limit, write_many
from tests.profiles import examples

PLAIN = ["class_id", "label", "confidence", "left", "top", "width", "height"]


def color(label: str = "red", *, component: int = 2, kind: str = "color") -> ClassifierMeta:
    info = LabelInfo(attribute=0, value=3, confidence=0.75, label=label)
    return ClassifierMeta(component, (info,), f"{label} ", kind)


def add(meta: FrameMeta, component: int, *boxes: tuple[float, ...], **more: Any) -> None:
    table = np.array(boxes, np.float32).reshape(-1, 6)
    masks = more.pop("masks", None)
    angles = more.pop("angles", None)
    found = Detections(
        table[:, :4],
        table[:, 4],
        table[:, 5].astype(np.int32),
        masks=masks,
        angles=angles,
        space=Space.FRAME,
    )
    meta.objects.append(found, component, **more)


@pytest.fixture
def rich(make_meta: MakeMeta) -> FrameMeta:
    """A car with a plate and a colour, tracked; a bus that cannot be written; another car."""
    frame = gray_frame(4)
    meta = make_meta(
        frame,
        (1, 2, 30, 20, 0.9, 0),
        (math.nan, 2, 30, 20, 0.8, 1),
        (5, 6, 10, 10, 0.7, 0),
    )
    add(meta, 3, (4, 5, 6, 7, 0.6, 0), labels=["plate"], parent=2)
    objects = meta.objects
    objects.object_ids[:] = [7, 8, UNTRACKED_OBJECT_ID, UNTRACKED_OBJECT_ID]
    objects.tracker_confidences = np.array([0.5, 0.5, 0, 0], np.float32)
    objects.add_classifier(0, color())
    objects.add_classifier(3, color("ABC 12%", kind=""))
    return meta


def lines(*metas: FrameMeta) -> list[dict[str, Any]]:
    writer = LineWriter()
    return [json.loads(writer.line(meta)[0]) for meta in metas]


def test_json_keys_are_there_when_there_is_something(rich: FrameMeta) -> None:
    car, other, plate = lines(rich)[0]["objects"]
    assert list(car) == [
        *PLAIN, "object_id", "tracker_confidence", "component_id", "text", "classifiers"
    ]  # fmt: skip
    assert (car["object_id"], car["tracker_confidence"], car["component_id"]) == (7, 0.5, 1)
    assert car["text"] == "car red"
    assert car["classifiers"] == [
        {
            "component_id": 2,
            "type": "color",
            "labels": [{"attribute": 0, "value": 3, "label": "red", "confidence": 0.75}],
        }
    ]
    assert list(other) == [*PLAIN, "component_id"]
    assert list(plate) == [*PLAIN, "component_id", "parent", "text", "classifiers"]
    assert plate["parent"] == 1  # of the objects in the line, not of those in memory
    assert "type" not in plate["classifiers"][0]
    assert plate["text"] == "plate ABC 12%"


def test_a_parent_that_is_left_out(rich: FrameMeta) -> None:
    rich.objects.parents[3] = 1
    assert "parent" not in lines(rich)[0]["objects"][2]


def test_component_ids_once_there_are_several_models(make_meta: MakeMeta, rich: FrameMeta) -> None:
    plain = make_meta(gray_frame(), (1, 2, 3, 4, 0.5, 0))
    before, _, after = lines(plain, rich, plain)
    assert list(before["objects"][0]) == PLAIN
    assert after["objects"][0]["component_id"] == 1


def test_a_text_that_says_no_more_than_the_label(make_meta: MakeMeta) -> None:
    meta = make_meta(gray_frame(), (1, 2, 3, 4, 0.5, 0), (1, 2, 3, 4, 0.5, 0))
    meta.objects.texts = {0: "car ", 1: ""}
    assert [list(o) for o in lines(meta)[0]["objects"]] == [PLAIN, PLAIN]


def test_numbers_that_json_does_not_know(make_meta: MakeMeta) -> None:
    meta = make_meta(gray_frame(), (1, 2, 3, 4, 0.5, 0))
    meta.objects.object_ids[0] = 1
    meta.objects.tracker_confidences = np.array([np.nan], np.float32)
    meta.objects.angles = np.array([np.inf], np.float32)
    bad = LabelInfo(0, np.int32(1), np.float32(np.nan), "x")  # type: ignore[arg-type]
    meta.objects.classifiers[0] = [ClassifierMeta(2, (bad,), "x")]
    item = lines(meta)[0]["objects"][0]
    assert list(item) == [*PLAIN, "object_id", "classifiers"]
    assert item["classifiers"][0]["labels"][0]["confidence"] is None


@given(
    st.lists(
        st.tuples(
            st.integers(-5, 300),
            st.text(max_size=5),
            st.lists(st.tuples(st.integers(0, 9), st.floats(width=32), st.text(max_size=5))),
        ),
        max_size=3,
    )
)
def test_classifiers_in_json_are_those_of_the_objects(said: list[Any]) -> None:
    metas = [
        ClassifierMeta(c, tuple(LabelInfo(i, v, s, t) for i, (v, s, t) in enumerate(found)), "", k)
        for c, k, found in said
    ]
    meta = FrameMeta("a", 0, 0, 0, 64, 48)
    add(meta, 1, (1, 2, 3, 4, 0.5, 0))
    meta.objects.classifiers[0] = metas
    line = LineWriter().line(meta)[0]
    assert json.loads(line)["objects"][0].get("classifiers", []) == classifier_dicts(metas)


def test_angles(make_meta: MakeMeta) -> None:
    meta = make_meta(gray_frame(), (1, 2, 3, 4, 0.5, 0), (1, 2, 3, 4, 0.5, 0))
    meta.objects.angles = np.array([0, -12.5], np.float32)
    assert [o.get("angle") for o in lines(meta)[0]["objects"]] == [None, -12.5]


def with_masks(make_meta: MakeMeta) -> FrameMeta:
    meta = make_meta(gray_frame(), (10, 10, 5, 5, 0.5, 0))
    disc = np.hypot(*np.mgrid[-1:1:12j, -1:1:12j]).astype(np.float32)
    add(
        meta,
        1,
        (20.5, 8.25, 24, 16, 0.9, 1),
        (55, 40, 20, 20, 0.9, 1),  # beyond the frame
        (-30, 0, 10, 10, 0.9, 1),  # outside
        labels=["car", "bus"],
        masks=[1 - disc] * 3,
        mask_threshold=0.2,
    )
    return meta


def test_masks_in_json(make_meta: MakeMeta) -> None:
    meta = with_masks(make_meta)
    items = lines(meta)[0]["objects"]
    assert ["mask" in o for o in items] == [False, True, True, False]
    for i in (1, 2):
        found = items[i]["mask"]
        placed = object_mask(meta.objects, i, 64, 48)
        assert placed is not None
        assert (found["left"], found["top"]) == (placed.left, placed.top)
        np.testing.assert_array_equal(coco_mask.decode(found), placed.pixels)
    # a disc in its box
    assert items[1]["mask"]["size"] == [16, 24]
    assert 0.3 * 16 * 24 < coco_mask.area(items[1]["mask"]) < 0.6 * 16 * 24


def test_masks_in_coco(tmp_path: Path, make_meta: MakeMeta) -> None:
    meta = with_masks(make_meta)
    path = tmp_path / "x.json"
    with open_sink(str(path)) as sink:
        sink.write(gray_frame(), meta)
    plain, one, cut, outside = json.loads(path.read_text())["annotations"]
    assert "segmentation" not in plain
    assert plain["area"] == 25
    assert "segmentation" not in outside
    for i, item in ((1, one), (2, cut)):
        placed = object_mask(meta.objects, i, 64, 48)
        assert placed is not None
        pixels = coco_mask.decode(item["segmentation"])
        np.testing.assert_array_equal(pixels, placed.full(64, 48))
        assert item["area"] == pixels.sum() == coco_mask.area(item["segmentation"])


def test_coco(tmp_path: Path, rich: FrameMeta) -> None:
    path = tmp_path / "x.json"
    with open_sink(f"coco:{path}") as sink:
        for _ in range(2):
            sink.write(gray_frame(4), rich)
    data = json.loads(path.read_text())
    car, other, plate = data["annotations"][3:]
    assert (car["id"], car["track_id"], car["attributes"]) == (4, 7, {"color": "red"})
    assert "track_id" not in other
    assert "attributes" not in other
    assert (plate["category_id"], plate["parent_id"]) == (2, other["id"])
    assert plate["attributes"] == {"classifier_2": "ABC 12%"}
    assert data["categories"] == [
        {"id": 0, "name": "car", "component_id": 1},
        {"id": 1, "name": "bus", "component_id": 1},
        {"id": 2, "name": "plate", "component_id": 3},
    ]


def test_coco_attributes_of_several_classifiers(tmp_path: Path, make_meta: MakeMeta) -> None:
    meta = make_meta(gray_frame(), (1, 2, 3, 4, 0.5, 0))
    two = (LabelInfo(0, 1, 0.5, "a"), LabelInfo(1, 2, 0.5))
    meta.objects.classifiers[0] = [
        color(),
        color("blue", component=5),
        ClassifierMeta(6, two, "a "),
    ]
    path = tmp_path / "x.json"
    with open_sink(str(path)) as sink:
        sink.write(gray_frame(), meta)
    assert json.loads(path.read_text())["annotations"][0]["attributes"] == {
        "color": "red",
        "color_5": "blue",
        "classifier_6_0": "a",
        "classifier_6_1": 2,
    }


def test_a_classifier_of_the_whole_frame(tmp_path: Path, make_meta: MakeMeta) -> None:
    frame = gray_frame()
    meta = make_meta(frame)
    meta.objects.labels.clear()
    add(meta, 2, (0, 0, 64, 48, 0.0, -1))
    meta.objects.add_classifier(0, color("traffic jam"))
    item = lines(meta)[0]["objects"][0]
    assert (item["class_id"], item["label"], item["text"]) == (-1, "", "traffic jam")
    with (
        open_sink(str(tmp_path / "x.json")) as coco,
        open_sink(f"kitti:{tmp_path}/k") as kitti,
    ):
        coco.write(frame, meta)
        kitti.write(frame, meta)
    data = json.loads((tmp_path / "x.json").read_text())
    assert (data["annotations"], data["categories"]) == ([], [])
    assert data["images"][0]["classifiers"] == item["classifiers"]
    assert (tmp_path / "k" / "000000.txt").read_text().startswith("traffic_jam 0.00 0 0.00 0.00")


def test_kitti_tracks(tmp_path: Path, rich: FrameMeta, make_meta: MakeMeta) -> None:
    other = gray_frame(9, source="b.mp4", source_id=1)
    with open_sink(f"kitti-track:{tmp_path}") as sink:
        sink.write(gray_frame(4), rich)
        sink.write(other, make_meta(other))
        sink.write(gray_frame(4), rich)
    zeros = " ".join(["0.00"] * 7)
    text = (tmp_path / "0000.txt").read_text().splitlines()
    assert text[:3] == [
        f"4 7 car 0 0 0.00 1.00 2.00 31.00 22.00 {zeros} 0.900000",
        f"4 -1 car 0 0 0.00 5.00 6.00 15.00 16.00 {zeros} 0.700000",
        f"4 -1 plate 0 0 0.00 4.00 5.00 10.00 12.00 {zeros} 0.600000",
    ]
    assert text[3:] == text[:3]
    assert (tmp_path / "0001.txt").read_text() == ""
    assert "1 objects without finite" not in str(sink.notices)
    assert "2 objects without finite" in str(sink.notices)


def segmented(meta: FrameMeta, component: int = 4, **more: Any) -> SegmentationMeta:
    """The left half of the image is class 1, with two rows of padding above."""
    classes = np.full((10, 16), -1, np.int32)
    classes[2:, :8] = 1
    fields: dict[str, Any] = {"num_classes": 3, "region": (0, 2, 16, 8), "labels": ("sky", "road")}
    found = SegmentationMeta(component, class_map=classes, **(fields | more))
    meta.segmentations.append(found)
    return found


def test_class_maps_in_json(make_meta: MakeMeta) -> None:
    meta = make_meta(gray_frame())
    assert "segmentations" not in lines(meta)[0]
    segmented(meta)
    assert lines(meta)[0]["segmentations"] == [
        {
            "component_id": 4,
            "width": 16,
            "height": 8,
            "classes": [{"class_id": 1, "label": "road", "pixels": 64}],
        }
    ]
    add(meta, 1, (1, 2, 3, 4, 0.5, 0))
    meta.objects.segmentations[0] = [segmented(meta)]
    assert lines(meta)[0]["objects"][0]["segmentations"][0]["classes"][0]["pixels"] == 64


def test_class_maps_as_images(tmp_path: Path, make_meta: MakeMeta) -> None:
    with open_sink(f"masks:{tmp_path}") as sink:
        assert (sink.kind, sink.needs_pixels) == ("masks", False)
        for i in range(3):
            frame = gray_frame(i)
            meta = make_meta(frame)
            if i != 1:
                segmented(meta)
                segmented(meta, 5)
            sink.write(frame, meta)
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "classes.json",
        "frame_000000.png",
        "frame_000000_5.png",
        "frame_000002.png",
        "frame_000002_5.png",
    ]
    with Image.open(tmp_path / "frame_000002.png") as image:
        assert (image.mode, image.size) == ("P", (64, 48))
        pixels = np.asarray(image)
        shown = np.asarray(image.convert("RGB"))
    assert (pixels[:, :32] == 1).all()
    assert (pixels[:, 32:] == 255).all()
    document = json.loads((tmp_path / "classes.json").read_text())
    assert [d["component_id"] for d in document] == [4, 5]
    assert document[0]["none"] == 255
    assert document[0]["classes"][1] == {"class_id": 1, "label": "road", "color": [128, 0, 0]}
    assert shown[0, 0].tolist() == [128, 0, 0]


def test_more_classes_than_a_palette_has(tmp_path: Path, make_meta: MakeMeta) -> None:
    frame = gray_frame()
    meta = make_meta(frame)
    segmented(meta, num_classes=400).class_map[2:, :8] = 300
    with open_sink(f"masks:{tmp_path}") as sink:
        sink.write(frame, meta)
    with Image.open(tmp_path / "frame_000000.png") as image:
        pixels = np.asarray(image)
    assert set(np.unique(pixels)) == {300, 65535}


def test_no_class_map_at_all(tmp_path: Path, make_meta: MakeMeta) -> None:
    with open_sink(f"masks:{tmp_path}") as sink:
        sink.write(gray_frame(), make_meta(gray_frame()))
    assert list(tmp_path.iterdir()) == []
    assert "no frame had a class map" in sink.notices[0].sentence


def test_palette_is_that_of_pascal_voc() -> None:
    colors = palette().tolist()
    assert colors[:6] == [
        [0, 0, 0], [128, 0, 0], [0, 128, 0], [128, 128, 0], [0, 0, 128], [128, 0, 128]
    ]  # fmt: skip
    assert colors[20] == [0, 64, 128]
    assert colors[255] == [224, 224, 192]
    assert len({tuple(c) for c in colors}) == 256


@settings(max_examples=examples(50))
@given(
    st.integers(1, 9), st.integers(1, 9), st.integers(1, 40), st.integers(1, 40), st.integers(0, 9)
)
def test_frame_class_map_takes_the_nearest(w: int, h: int, width: int, height: int, m: int) -> None:
    classes = np.arange((h + m) * (w + m), dtype=np.int32).reshape(h + m, w + m) % 200
    meta = SegmentationMeta(1, 200, classes, region=(m // 2, m, w, h))
    found = frame_class_map(meta, width, height)
    assert found.shape == (height, width)
    for y in range(0, height, 3):
        for x in range(0, width, 3):
            at = (int((y + 0.5) * h / height) + m, int((x + 0.5) * w / width) + m // 2)
            assert found[y, x] == classes[at]


@pytest.mark.parametrize("name", ["x.parquet", "x.arrow"])
def test_tables(tmp_path: Path, rich: FrameMeta, make_meta: MakeMeta, name: str) -> None:
    pa = pytest.importorskip("pyarrow")
    path = tmp_path / name
    with open_sink(str(path)) as sink:
        for i in range(3):
            frame = gray_frame(i)
            sink.write(frame, make_meta(frame))
            sink.write(frame, rich)
            assert not path.exists()
        rich.objects.class_ids = rich.objects.class_ids + 1  # later changes are not seen
    assert sink.frames == 6
    assert "3 objects without finite" in sink.notices[0].sentence
    if name.endswith("parquet"):
        table = pytest.importorskip("pyarrow.parquet").read_table(path)
    else:
        table = pa.ipc.open_file(path).read_all()
    rows = table.to_pylist()
    assert len(rows) == 9
    assert rows[:3] == rows[3:6]
    car, other, plate = rows[:3]
    assert (car["frame"], car["label"], car["object_id"], car["text"]) == (4, "car", 7, "car red")
    assert car["classifier_labels"] == ["red"]
    assert other["object_id"] is None
    assert (plate["component_id"], plate["parent"]) == (3, 1)
    assert not (tmp_path / f"{name}.part").exists()


@pytest.mark.parametrize("name", ["x.parquet", "x.arrow"])
def test_a_table_that_ends_early_can_be_read(tmp_path: Path, rich: FrameMeta, name: str) -> None:
    pytest.importorskip("pyarrow")
    sink = open_sink(str(tmp_path / name))
    sink.write(gray_frame(), rich)
    sink.abort("interrupted")
    if name.endswith("parquet"):
        table = pytest.importorskip("pyarrow.parquet").read_table(tmp_path / name)
    else:
        table = pytest.importorskip("pyarrow").ipc.open_file(tmp_path / name).read_all()
    assert table.num_rows == 3


@pytest.mark.parametrize("name", ["x.parquet", "x.arrow"])
def test_a_table_on_a_full_disk(
    tmp_path: Path, make_meta: MakeMeta, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow")
    monkeypatch.setattr("headrace.media.sinks.table.MAX_FRAMES", 2)
    frame = gray_frame()
    sink = open_sink(str(tmp_path / name))
    boxes = [(*row, 0) for row in np.random.default_rng(0).uniform(0, 40, (50, 5))]
    meta = make_meta(frame, *boxes)
    with (
        file_size_limit(3000),
        pytest.raises(MediaError, match="none of the earlier frames is kept"),
    ):
        write_many(sink, frame, meta, 200)
    sink.abort("the disk is full")
    assert not (tmp_path / f"{name}.part").exists()
    assert not (tmp_path / name).exists()
    with pytest.raises(MediaError):
        sink.write(frame, make_meta(frame))


def test_coco_keypoints_are_scored_by_its_tools(tmp_path: Path, make_meta: MakeMeta) -> None:
    """Read as truth and as results, poses agree with themselves."""
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    points = np.random.default_rng(0).uniform(1, 300, (2, 17, 3)).astype(np.float32)
    points[..., 2] = np.linspace(0, 1, 17)
    path = tmp_path / "poses.json"
    frame = gray_frame(0)
    with open_sink(str(path)) as sink:
        meta = make_meta(frame)
        boxes = [[0, 0, 300, 300], [5, 5, 200, 200]]
        posed = Detections(boxes, [0.9, 0.5], [0, 0], space=Space.FRAME, keypoints=points)
        meta.objects.append(posed, 1, labels=["person"])
        sink.write(frame, meta)
    data = json.loads(path.read_text())
    (category,) = data["categories"]
    assert category["keypoints"][:2] == ["nose", "left_eye"]
    assert [16, 14] in category["skeleton"]  # counted from 1
    first = data["annotations"][0]
    assert first["keypoints"][2::3] == [0] + [1] * 7 + [2] * 9
    assert first["num_keypoints"] == 16
    np.testing.assert_allclose(first["keypoint_scores"], points[0, :, 2], atol=1e-6)
    np.testing.assert_allclose(first["keypoints"][::3], points[0, :, 0], atol=1e-3)
    truth = COCO(str(path))
    scored = COCOeval(truth, truth.loadRes(data["annotations"]), "keypoints")
    scored.evaluate()
    scored.accumulate()
    scored.summarize()
    assert scored.stats[0] == pytest.approx(1)


def test_coco_rotated_boxes_are_polygons(tmp_path: Path, make_meta: MakeMeta) -> None:
    frame = gray_frame(0)
    path = tmp_path / "out.json"
    with open_sink(str(path)) as sink:
        meta = make_meta(frame)
        found = Detections(
            [[100, 100, 40, 20], [0, 0, 8, 4]], [0.9, 0.5], [0, 0], None, [90, 0], space=Space.FRAME
        )
        meta.objects.append(found, 1)
        sink.write(frame, meta)
    first, second = json.loads(path.read_text())["annotations"]
    assert first["segmentation"] == [[130, 90, 130, 130, 110, 130, 110, 90]]
    assert first["area"] == 800
    assert "segmentation" not in second


def test_keypoints_in_json_only_of_objects_that_have_some(make_meta: MakeMeta) -> None:
    meta = make_meta(gray_frame(0))
    plain = Detections([[1, 2, 3, 4]], [0.5], [0], space=Space.FRAME)
    points = [[[10.12345, 20, 0.5], [30, 40.5, 1]]]
    posed = Detections([[1, 2, 3, 4]], [0.5], [0], space=Space.FRAME, keypoints=points)
    meta.objects.append(plain, 1)
    meta.objects.append(posed, 1)
    meta.objects.keep(np.array([0, 1]))
    first, second = json.loads(LineWriter().line(meta)[0])["objects"]
    assert "keypoints" not in first
    assert second["keypoints"] == [[10.123, 20, 0.5], [30, 40.5, 1]]
