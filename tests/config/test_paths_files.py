"""Which file a path means, and what is said when it is not there."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from headrace.config import ModelConfig, reading
from headrace.errors import ConfigError
from tests._core.formats.test_foreign import FILES


def write(folder: Path, text: str, name: str = "model.txt") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text("[property]\n" + text)
    return path


def test_relative_to_the_config_not_to_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    cfg = ModelConfig.load(write(tmp_path / "a", "onnx-file=m/x.onnx\nlabelfile-path=../l.txt\n"))
    assert cfg.onnx_file == tmp_path / "a/m/x.onnx"
    assert cfg.labelfile_path == tmp_path / "a/../l.txt"


def test_the_link_to_the_config_is_followed_first(tmp_path: Path) -> None:
    real = write(tmp_path / "real", "onnx-file=x.onnx\n")
    (tmp_path / "links").mkdir()
    link = tmp_path / "links/model.txt"
    link.symlink_to(real)
    assert ModelConfig.load(link).onnx_file == tmp_path / "real/x.onnx"


def test_links_to_existing_files_are_resolved(tmp_path: Path) -> None:
    (tmp_path / "real.onnx").touch()
    (tmp_path / "link.onnx").symlink_to("real.onnx")
    cfg = ModelConfig.load(write(tmp_path, f"onnx-file=link.onnx\nmean-file={tmp_path}/link.onnx"))
    assert cfg.onnx_file == cfg.mean_file == tmp_path / "real.onnx"


def test_not_resolved(tmp_path: Path) -> None:
    cfg = ModelConfig.load(write(tmp_path, "custom-network-config=a.cfg\n"))
    assert cfg.custom_network_config == "a.cfg"


@pytest.mark.parametrize("value", ["loop", "plain/x", "n" * 300, "n/" * 3000])
def test_paths_that_cannot_be_looked_at(tmp_path: Path, value: str) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "plain").touch()
    path = write(tmp_path, f"gpu-id=0\nonnx-file={value}\n")
    with pytest.raises(ConfigError, match=r"model.txt:3: onnx-file=.* is not a usable path"):
        ModelConfig.load(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may look everywhere")
def test_forbidden_folder(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0)
    path = write(tmp_path, "onnx-file=closed/x.onnx\n")
    with pytest.raises(ConfigError, match="not a usable path"):
        ModelConfig.load(path)


def test_all_missing_files_with_line_and_neighbours(tmp_path: Path) -> None:
    (tmp_path / "libs").mkdir()
    for name in ("yolov8s.onnx", "yolov8.txt", "labels.txt", "libs/libparser.so"):
        (tmp_path / name).touch()
    cfg = ModelConfig.load(
        write(
            tmp_path,
            "onnx-file=yolov8.onnx\nlabelfile-path=label.txt\nmean-file=mean.ppm\n"
            "custom-lib-path=lib/libparser.so\n",
        )
    )
    with pytest.raises(ConfigError) as caught:
        cfg.check_files()
    text = str(caught.value)
    assert "model.txt:2: onnx-file=yolov8.onnx: there is no such file." in text
    assert f"expected a file at {tmp_path}/yolov8.onnx" in text
    assert f"near it in {tmp_path}: yolov8s.onnx\n" in text
    assert "model.txt:3: labelfile-path=label.txt" in text
    assert f"near it in {tmp_path}: labels.txt" in text
    assert "model.txt:4: mean-file" in text
    assert f"{tmp_path} has no folder lib" in text
    assert f"near it in {tmp_path}: libs" in text


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ('"a.onnx"', "quotes are part of the value"),
        ("a.onnx # x", "a comment behind the value"),
        ("a.onnx ", "blank"),
        ("~/a.onnx", "neither ~ nor"),
        (".", "it is a folder"),
    ],
)
def test_why_a_file_is_not_found(tmp_path: Path, value: str, words: str) -> None:
    (tmp_path / "a.onnx").touch()
    cfg = ModelConfig.load(write(tmp_path, f"onnx-file={value}\n"))
    with pytest.raises(ConfigError, match=words):
        cfg.check_files()


def test_nothing_is_missing(tmp_path: Path) -> None:
    for name in ("a.onnx", "l.txt", "p.py"):
        (tmp_path / name).touch()
    text = (
        "onnx-file=a.onnx\nlabelfile-path=l.txt\ncustom-lib-path=p.py\nmodel-engine-file=x.engine"
    )
    ModelConfig.load(write(tmp_path, text)).check_files()


def test_an_engine_is_enough(tmp_path: Path) -> None:
    (tmp_path / "x.engine").touch()
    ModelConfig.load(write(tmp_path, "model-engine-file=x.engine\n")).check_files()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("gpu-id=0", "expected onnx-file"),
        ("model-file=a", r"model-file needs proto-file \(Caffe\) or custom-network-config"),
        ("proto-file=a", "proto-file needs model-file"),
        ("tlt-encoded-model=a\ntlt-model-key=k", "only NVIDIA's library reads it: export"),
        ("model-engine-file=x.engine", "x.engine is not there either"),
    ],
)
def test_no_model(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        ModelConfig.load(write(tmp_path, text)).check_files()


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("model-file", "this is a checkpoint of Ultralytics"),
        ("proto-file", "yolo export model="),
        ("tlt-encoded-model", "this is a checkpoint of Ultralytics"),
        ("custom-network-config", "format=onnx"),
    ],
)
def test_a_model_of_another_framework_is_named_where_it_stands(
    tmp_path: Path, key: str, words: str
) -> None:
    (tmp_path / "best.pt").write_bytes(FILES["best.pt"][0])
    cfg = ModelConfig.load(write(tmp_path, f"{key}=best.pt\n"))
    with pytest.raises(ConfigError, match=words) as caught:
        cfg.check_files()
    assert caught.value.code == "no-model"
    texts = str([notice.sentence for notice in cfg.notices])
    assert "needs proto-file" not in texts
    assert "needs model-file" not in texts
    assert "needs tlt-model-key" not in texts


@pytest.mark.parametrize(
    "key", ["onnx-file", "model-engine-file", "uff-file", "labelfile-path", "mean-file"]
)
def test_a_folder_of_a_framework_is_named(tmp_path: Path, key: str) -> None:
    (tmp_path / "sm").mkdir()
    (tmp_path / "sm" / "saved_model.pb").touch()
    cfg = ModelConfig.load(write(tmp_path, f"{key}=sm\n"))
    with pytest.raises(ConfigError, match=rf"{key}=sm: this is a SavedModel of TensorFlow"):
        cfg.check_files()


def test_an_onnx_beside_an_encoded_model_is_offered(tmp_path: Path) -> None:
    for name in ("net.etlt", "net.onnx"):
        (tmp_path / name).write_bytes(b"\1\2\3")
    cfg = ModelConfig.load(write(tmp_path, "tlt-encoded-model=net.etlt\ntlt-model-key=k\n"))
    with pytest.raises(ConfigError, match=r"onnx-file=.*net\.onnx lies beside it"):
        cfg.check_files()


def test_labels_are_not_opened_for_type_100(tmp_path: Path) -> None:
    (tmp_path / "a.onnx").touch()
    text = "network-type=100\nonnx-file=a.onnx\nlabelfile-path=none.txt\n"
    ModelConfig.load(write(tmp_path, text)).check_files()


def test_a_config_in_a_pipe_is_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.txt"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("[property]\ngpu-id=3\n",))
    writer.start()
    assert ModelConfig.load(pipe).gpu_id == 3
    writer.join()


def test_a_pipe_that_nobody_writes_to_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_PIPE_TIMEOUT_S", 0.01)
    os.mkfifo(tmp_path / "pipe.txt")
    with pytest.raises(ConfigError, match="is a pipe, and nothing came"):
        ModelConfig.load(tmp_path / "pipe.txt")


def test_what_is_no_file_is_not_called_missing(tmp_path: Path) -> None:
    cfg = ModelConfig.load(write(tmp_path, "onnx-file=/dev/null\n"))
    with pytest.raises(ConfigError, match="onnx-file=/dev/null: this is a device or pipe"):
        cfg.check_files()
