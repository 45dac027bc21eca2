"""Folders of classes, and folders of masks."""

import numpy as np
import pytest

from headrace.diagnose.evaluate.datasets.folders import load_class_folders, load_masks, read_mask
from headrace.errors import MediaError
from tests.diagnose.evaluate.datasets.images import image, mask

VALUES = [[0, 1], [255, 2]]


def test_a_folder_is_a_class(tmp_path):
    for name in ("10_dog", "2_cat"):
        image(tmp_path / name / "a.jpg")
    image(tmp_path / "2_cat" / "b.png")
    (tmp_path / "empty").mkdir()
    (tmp_path / "2_cat" / "notes.txt").write_text("x")
    found = load_class_folders(tmp_path)
    assert found.classes == ("2_cat", "10_dog")
    assert [p.truth for p in found.images] == [0, 0, 1]
    assert [p.truth for p in found.limited(2).images] == [0, 0]
    with pytest.raises(MediaError, match="has no folders with images"):
        load_class_folders(tmp_path / "empty")
    with pytest.raises(MediaError, match="cannot be read"):
        load_class_folders(tmp_path / "gone")


def test_masks_belong_to_images_of_their_name(tmp_path):
    mask(tmp_path / "masks" / "a.png", VALUES)
    mask(tmp_path / "masks" / "b.png", VALUES)
    image(tmp_path / "images" / "a.jpg", (2, 2))
    found = load_masks(tmp_path / "masks", [tmp_path / "images"], ["x", "y", "z"])
    (one,) = found.images
    assert one.truth == tmp_path / "masks" / "a.png"
    assert one.size == (2, 2)
    assert found.classes == ("x", "y", "z")
    assert "1 masks have no image and are left out: b" in found.notices[0].sentence
    with pytest.raises(MediaError, match="--images names"):
        load_masks(tmp_path / "masks", [])
    with pytest.raises(MediaError, match="no image has the name of a mask"):
        load_masks(tmp_path / "masks", [tmp_path])
    with pytest.raises(MediaError, match="has no masks"):
        load_masks(tmp_path, [tmp_path / "images"])


@pytest.mark.parametrize("palette", [False, True])
def test_the_values_of_a_mask_are_its_classes(tmp_path, palette):
    path = mask(tmp_path / "a.png", VALUES, palette=palette)
    assert read_mask(path, 3).tolist() == VALUES
    with pytest.raises(MediaError, match="the mask has the value 2"):
        read_mask(path, 2)


def test_other_images_are_no_masks(tmp_path):
    with pytest.raises(MediaError, match="a mask of mode RGB"):
        read_mask(image(tmp_path / "a.png"), 3)
    (tmp_path / "b.png").write_bytes(np.arange(9, dtype=np.uint8).tobytes())
    with pytest.raises(MediaError, match="is not an image that can be read"):
        read_mask(tmp_path / "b.png", 3)
