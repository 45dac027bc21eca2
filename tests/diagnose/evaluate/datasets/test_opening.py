"""The format of a data set is seen by its path."""

import pytest

from headrace import load_dataset
from headrace.errors import ConfigError, MediaError
from tests.diagnose.evaluate.datasets import test_coco, test_voc, test_yolo
from tests.diagnose.evaluate.datasets.images import image, mask


def test_the_path_shows_the_format(tmp_path):
    assert load_dataset(test_coco.write(tmp_path), images=tmp_path / "val").classes == ("y", "x")
    assert load_dataset(str(test_yolo.write(tmp_path))).classes == ("car", "person")
    voc = test_voc.write(tmp_path / "voc", f"<annotation>{test_voc.item()}</annotation>")
    assert (
        load_dataset(voc).kind
        == load_dataset(voc / "Annotations", images=[voc / "JPEGImages"]).kind
        == "boxes"
    )
    image(tmp_path / "kinds" / "dog" / "a.jpg")
    assert repr(load_dataset(tmp_path / "kinds")).endswith("1 images, 1 classes, classes)")
    mask(tmp_path / "masks" / "a.png", [[0]])
    found = load_dataset(tmp_path / "masks", images=[tmp_path / "kinds" / "dog"])
    assert found.kind == "masks"
    assert found.classes == ()
    (tmp_path / "names.txt").write_text("x\ny\n")
    named = load_dataset(
        tmp_path / "masks", "masks", images=tmp_path / "kinds" / "dog", names=tmp_path / "names.txt"
    )
    assert named.classes == ("x", "y")


def test_other_things_are_refused(tmp_path):
    with pytest.raises(MediaError, match="there is no such data set"):
        load_dataset(tmp_path / "gone")
    (tmp_path / "a.txt").write_text("")
    with pytest.raises(MediaError, match="no data set that is known"):
        load_dataset(tmp_path / "a.txt")
    with pytest.raises(MediaError, match=r"kitti.* is no format"):
        load_dataset(tmp_path, "kitti")
    mask(tmp_path / "masks" / "a.png", [[0]])
    with pytest.raises(ConfigError, match="label file cannot be read"):
        load_dataset(tmp_path / "masks", "masks", images=tmp_path, names=tmp_path / "gone.txt")
