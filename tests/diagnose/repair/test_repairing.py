"""A search finds the set-up that was meant, or says why it does not, and writes if asked."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from headrace.config import ModelConfig
from headrace.diagnose.repair import TrueBox, repair
from headrace.errors import ConfigError, EngineError, MediaError
from tests.diagnose.repair.conftest import Write
from tests.mistakes.cases import config_text
from tests.mistakes.scene import NAMES, SIDE, squares
from tests.mistakes.setups import CLASSIFIER, SSD, UNIT, YOLOV8

CONVEYOR = Path(__file__).parents[3] / "examples" / "conveyor"


@pytest.mark.slow
def test_several_faults_are_undone_and_the_file_keeps_its_form(write: Write) -> None:
    text = config_text(YOLOV8.configs["config.txt"])
    text = text.replace(f"net-scale-factor={UNIT}", "net-scale-factor=1").replace("\n", "\r\n")
    text = text.replace("model-color-format=0", "# of the camera\r\nmodel-color-format=1")
    path = write(YOLOV8, files={"config.txt": text})
    before = path.read_bytes()
    found = repair(path, str(path.parent / "images"))
    assert found.outcome == "chosen", found.reason
    assert path.read_bytes() == before
    assert found.write() == path
    after = path.read_bytes()
    old, new = before.decode().split("\r\n"), after.decode().split("\r\n")
    changed = [(a, b) for a, b in zip(old, new, strict=True) if a != b]
    assert [a for a, _ in changed] == ["net-scale-factor=1", "model-color-format=1"]
    cfg = ModelConfig.load(path)
    assert cfg.net_scale_factor == pytest.approx(1 / 255)
    assert cfg.model_color_format == 0
    again = repair(path, str(path.parent / "images"))
    assert again.outcome == "nothing"
    assert again.best is again.start


def test_a_right_config_needs_no_repair(write: Write) -> None:
    path = write(YOLOV8)
    found = repair(path, str(path.parent / "images"), frames=4)
    assert found.outcome == "nothing", found.reason
    assert found.to_dict()["change"] == {}
    assert found.to_dict()["diff"] == ""


def test_what_no_key_undoes_stays_undecided_with_its_reason(write: Write) -> None:
    path = write(YOLOV8, files={"labels.txt": "a\nb\nc\nd\ne\n"})
    found = repair(path, str(path.parent / "images"), frames=4)
    assert found.outcome == "undecided"
    assert "labels" in found.reason
    data = found.to_dict()
    assert data["change"] == {}
    assert data["candidates"][0]["terms"][0]["name"] == "objects"
    assert "labels-count" in [finding["code"] for finding in data["start"]["findings"]]


@pytest.mark.slow
def test_a_true_box_decides_what_plausibility_cannot(write: Write) -> None:
    # to this network a blue square is a red one with the colours exchanged: both are as plausible
    path = write(SSD, {"model-color-format": 1})
    source = str(path.parent / "images")
    assert repair(path, source, frames=4).outcome == "nothing"
    square = squares(5)[0]
    truth = TrueBox(5, NAMES[square.kind], (square.left, square.top, SIDE, SIDE))
    found = repair(path, source, boxes=[truth], frames=4)
    assert found.outcome == "chosen", found.reason
    assert found.to_dict()["change"] == {"model-color-format": "0"}
    assert 5 in [frame.frame for frame in found.frames]
    beside = TrueBox(5, "", (290.0, 150.0, 20.0, 20.0))
    assert repair(path, source, boxes=[beside], frames=4, seconds=5).outcome == "undecided"
    with pytest.raises(MediaError, match="no frame 99"):
        repair(path, source, boxes=[TrueBox(99, "", (0, 0, 9, 9))])


def test_a_new_file_elsewhere_names_the_same_files(write: Write, tmp_path: Path) -> None:
    path = write(YOLOV8, {"class-attrs-all.pre-cluster-threshold": 0.999})
    found = repair(path, str(path.parent / "images"), frames=4)
    assert found.outcome == "chosen", found.reason
    (tmp_path / "other").mkdir()
    out = found.write(tmp_path / "other" / "config.txt")
    cfg = ModelConfig.load(out)
    cfg.check_files()
    assert cfg.onnx_file is not None
    assert cfg.onnx_file.samefile(path.parent / "yolov8.onnx")
    assert ModelConfig.load(path).all_classes.pre_cluster_threshold == pytest.approx(0.999)
    with pytest.raises(ConfigError, match="exists"):
        found.write(out)
    path.write_text(path.read_text() + "\n# changed meanwhile\n")
    with pytest.raises(ConfigError, match="changed meanwhile"):
        found.write()
    assert path.read_text().endswith("# changed meanwhile\n")


def test_a_config_that_is_refused_is_searched_too(write: Write) -> None:
    path = write(YOLOV8, {"network-mode": 7, "num-detected-classes": 80})
    found = repair(path, str(path.parent / "images"), frames=4)
    assert found.outcome == "chosen", found.reason
    assert found.to_dict()["change"] == {"network-mode": None, "num-detected-classes": "3"}


@pytest.mark.slow
def test_a_bare_model_gets_a_config(write: Write, tmp_path: Path) -> None:
    path = write(YOLOV8, models={"yolov8.onnx": "plain.onnx"}).parent / "yolov8.onnx"
    found = repair(path, str(path.parent / "images"), frames=4)
    with pytest.raises(ConfigError, match="a model is no config"):
        found.write()
    if found.outcome == "nothing":  # what recognition takes first is right
        found.write(tmp_path / "new.txt", found.start)
    else:
        found.write(tmp_path / "new.txt")
    cfg = ModelConfig.load(tmp_path / "new.txt")
    assert cfg.net_scale_factor == pytest.approx(1 / 255)
    assert cfg.parse_bbox_func_name == "HeadraceParseYoloV8"


def test_labels_alone_prove_nothing(write: Write) -> None:
    path = write(CLASSIFIER, {"model-color-format": 1})
    found = repair(path, str(path.parent / "images"), frames=4)
    assert found.outcome in ("nothing", "undecided")


def test_the_time_bounds_the_search(write: Write) -> None:
    path = write(SSD, {"net-scale-factor": 1, "offsets": None})
    found = repair(path, str(path.parent / "images"), frames=2, seconds=0.0)
    assert found.tried == 1
    assert found.left_out > 0
    assert found.outcome == "undecided"


@pytest.mark.slow
def test_frames_that_show_nothing_decide_nothing(write: Write) -> None:
    for keys in ({}, {"class-attrs-all.pre-cluster-threshold": 0.999}):
        path = write(YOLOV8, keys, scene="empty")
        found = repair(path, str(path.parent / "images"), frames=4)
        assert found.outcome == "undecided", found.reason
        assert "a source that shows objects, or a true box, decides" in found.reason


def test_a_lost_model_and_lost_labels_are_sought_beside_them(write: Write) -> None:
    path = write(YOLOV8, {"onnx-file": "lost.onnx", "labelfile-path": "lost.txt"})
    (path.parent / "other_labels.txt").write_text("a\nb\n")  # not as many as classes
    found = repair(path, str(path.parent / "images"), frames=4)
    assert found.outcome == "chosen", found.reason
    change = found.to_dict()["change"]
    assert change == {"onnx-file": "yolov8.onnx", "labelfile-path": "labels.txt"}
    (path.parent / "labels.txt").unlink()
    found = repair(path, str(path.parent / "images"), frames=4)
    assert found.to_dict()["change"] == {"onnx-file": "yolov8.onnx", "labelfile-path": None}
    assert "numbers of their classes" in str(found.to_dict()["candidates"][0]["why"])


def test_keys_without_a_group_get_one(write: Write) -> None:
    path = write(YOLOV8, {"model-color-format": 1})
    text = path.read_text()
    path.write_text(text.replace("[property]\n", ""))
    found = repair(path, str(path.parent / "images"), frames=4)
    assert found.reason.startswith("model-color-format=0: ")
    assert found.to_dict()["change"] == {"model-color-format": "0"}
    for target in ("nowhere.txt", path.name):
        link = path.parent / f"link to {target}"
        link.symlink_to(target)
        with pytest.raises(ConfigError, match=r"it is a link to|the file exists"):
            found.write(link)
        assert link.is_symlink()
    assert path.read_text() == text.replace("[property]\n", "")
    found.write()
    assert path.read_text() == text.replace("format=1", "format=0")


def test_a_config_without_a_model_is_refused_at_once(write: Write) -> None:
    path = write(YOLOV8)
    path.write_text("property:\n  gie-unique-id: 1\n  network-type: 0\n")
    with pytest.raises(EngineError, match="neither a model nor") as caught:
        repair(path.rename(path.with_name("post.yml")), str(path.parent / "images"))
    assert caught.value.code == "no-model"


def test_a_config_of_the_server_is_named(write: Write, tmp_path: Path) -> None:
    path = write(YOLOV8)
    path.write_text("infer_config {\n  unique_id: 1\n}\n")
    with pytest.raises(ConfigError, match="a config of nvinferserver") as caught:
        repair(path, str(path.parent / "images"))
    assert caught.value.code == "foreign-file"


@pytest.mark.parametrize(
    "data", [b"", b"\0\1\2", b"sources: a.mp4\nmodels: b.txt\n", b"[a]\nb=1\n"]
)
@pytest.mark.sampled
def test_a_file_that_is_no_config_is_refused(write: Write, data: bytes) -> None:
    path = write(YOLOV8)
    path.write_bytes(data)
    with pytest.raises(ConfigError):
        repair(path, str(path.parent / "images"), frames=2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("network-type=0", "network-type=2"),  # the function that is named is a detector's
        ("model-color-format=0", "model-color-format=1"),  # the model's description says RGB
        ("pre-cluster-threshold=0.3", "pre-cluster-threshold=0.001"),  # 200 boxes in each frame
        ("parse-bbox-func-name=parse_conveyor\n", ""),
    ],
)
@pytest.mark.sampled
def test_mistakes_around_a_parser_of_the_users_own(tmp_path: Path, old: str, new: str) -> None:
    folder = shutil.copytree(CONVEYOR, tmp_path / "conveyor")
    path = folder / "config_infer_primary.txt"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    found = repair(path, str(folder / "conveyor.mp4"), frames=4)
    assert found.outcome == "chosen", found.reason
    name = old.partition("=")[0].strip()
    assert [key.rpartition(".")[2] for key in found.to_dict()["change"]] == [name]
