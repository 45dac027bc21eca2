"""YOLO's layout: `data.yaml`, images, and text files beside them."""

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.diagnose.evaluate.datasets.yolo import load_yolo
from headrace.errors import MediaError
from tests.diagnose.evaluate.datasets.images import image
from tests.profiles import examples

YAML = "path: .\nval: images/val\nnames: {0: car, 1: person}\n"


def write(folder, labels="1 0.5 0.5 0.5 0.25\n", yaml=YAML, **options):
    image(folder / "images" / "val" / "a.jpg", **options)
    (folder / "labels" / "val").mkdir(parents=True, exist_ok=True)
    if labels is not None:
        (folder / "labels" / "val" / "a.txt").write_text(labels)
    (folder / "data.yaml").write_text(yaml)
    return folder / "data.yaml"


@pytest.mark.parametrize(
    "yaml",
    [
        YAML,
        "val: [images/val]\nnames: [car, person]\n",
        "path: gone\nval: list.txt\nnames: [car, person]\n",
    ],
)
def test_boxes_in_pixels(tmp_path, yaml):
    (tmp_path / "list.txt").write_text("./images/val/a.jpg\n\n")
    found = load_yolo(write(tmp_path, yaml=yaml))
    assert found.classes == ("car", "person")
    (one,) = found.images
    assert one.size == (40, 20)
    assert one.truth.boxes.tolist() == [[10, 7.5, 20, 5]]
    assert one.truth.class_ids.tolist() == [1]
    assert not found.has_masks


def test_a_turned_image_has_its_turned_size(tmp_path):
    (one,) = load_yolo(write(tmp_path, orientation=6)).images
    assert one.size == (20, 40)
    assert one.truth.boxes.tolist() == [[5, 15, 10, 10]]


def test_polygons_are_masks_with_a_box_around(tmp_path):
    found = load_yolo(write(tmp_path, "0 0.1 0.1 0.5 0.1 0.5 0.9\n"))
    (one,) = found.images
    assert np.allclose(one.truth.boxes, [[4, 2, 16, 16]])
    assert np.allclose(one.truth.masks[0], [[4, 2, 20, 2, 20, 18]])
    assert found.has_masks


def test_images_without_labels_show_nothing(tmp_path):
    path = write(tmp_path)
    image(tmp_path / "images" / "val" / "b.jpg")
    (tmp_path / "images" / "val" / "c.jpg").write_bytes(b"no image")
    found = load_yolo(path)
    assert [len(p.truth.boxes) for p in found.images] == [1, 0]
    text = " ".join(n.sentence for n in found.notices)
    assert "1 images cannot be read and are left out: c.jpg" in text
    assert "1 of 2 images have no labels" in text


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ("0 0.5 0.5 0.5 0.5\n2 0.5 0.5 0.5 0.5\n", "a.txt:2: class 2"),
        ("-1 0.5 0.5 0.5 0.5\n", "class -1"),
        ("0 0.5 0.5 0.5\n", "a.txt:1: '?0 0.5 0.5 0.5'? is no label"),
        ("0 0.5 0.5 0.5 1.5\n", "is no label"),
        ("0 0.5 nan 0.5 0.5\n", "is no label"),
        ("car 0.5 0.5 0.5 0.5\n", "is no label"),
        (None, "no image of val has labels"),
    ],
)
def test_bad_labels_are_refused_with_their_line(tmp_path, labels, words):
    with pytest.raises(MediaError, match=words):
        load_yolo(write(tmp_path, labels))


@pytest.mark.parametrize(
    ("yaml", "words"),
    [
        ("names: [a]\n", "there is no val in it"),
        ("train: images\nnames: [a]\n", "--split train"),
        ("val: images/val\n", "names is missing"),
        ("val: images/val\nnames: {0: a, 2: b}\n", "has gaps"),
        ("val: gone\nnames: [a]\n", "there is no .*gone"),
        ("val: x.txt\nnames: [a]\n", "there is no .*x.txt"),
        ("- a\n", "no description of a data set"),
        ("a: &x [1]\nval: *x\n", "data.yaml:2: malformed YAML: aliases are not read"),
        ("? [a]\n: 1\nval: images/val\n", "data.yaml:1: malformed YAML: a key is not a text"),
        ("names: [a]\n---\nval: images/val\n", "data.yaml:2: malformed YAML: another document"),
        ("val: [\n", "data.yaml:2: malformed YAML"),
    ],
)
def test_bad_yaml_is_refused(tmp_path, yaml, words):
    with pytest.raises(MediaError, match=words):
        load_yolo(write(tmp_path, yaml=yaml))
    with pytest.raises(MediaError, match="cannot be read"):
        load_yolo(tmp_path / "gone.yaml")


@settings(max_examples=examples(40), deadline=None)
@given(st.text("0123456789.- \nnaif:[]{},&*!", max_size=40), st.booleans())
def test_whatever_stands_in_it_is_read_or_refused(tmp_path_factory, text, labels):
    folder = tmp_path_factory.mktemp("fuzz")
    path = write(folder, text) if labels else write(folder, yaml=f"{YAML}{text}")
    with suppress(MediaError):
        found = load_yolo(path)
        assert all(np.isfinite(p.truth.boxes).all() for p in found.images)
