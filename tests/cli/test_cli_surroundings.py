"""What a run meets and must not show or die of: raw warnings, interrupts, closed output, keys."""

from __future__ import annotations

import re
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image

from tests import warm
from tests.infer.models import node, write_config, write_model
from tests.inside import headrace
from tests.media.conftest import write_clip

Config = Callable[..., Path]
RAW = re.compile(r"Warning|\[\w+ @ |site-packages|\.py:\d+: ")


def image(path: Path, exif: bytes = b"") -> Path:
    Image.new("RGB", (64, 48), (200, 0, 0)).save(path, exif=exif)
    return path


def test_pillows_warning_about_metadata_is_not_shown(mean_config: Config, tmp_path: Path) -> None:
    cut_off = b"Exif\0\0II*\0\x08\0\0\0" + struct.pack("<H", 9) + bytes(7)
    path = image(tmp_path / "a.jpg", cut_off)
    with pytest.warns(UserWarning, match="EXIF"), Image.open(path) as opened:
        opened.getexif()
    done = headrace("run", mean_config(), path, "-o", "a.jsonl", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert not RAW.search(done.stderr)


def test_ffmpegs_errors_about_damage_are_not_shown(mean_config: Config, tmp_path: Path) -> None:
    path = write_clip(tmp_path / "a.mp4", 30)
    data = bytearray(path.read_bytes())
    for place in range(len(data) // 3, len(data) // 2, 5):
        data[place] ^= 0x5A
    path.write_bytes(data)
    before = av.logging.get_level()
    av.logging.set_level(av.logging.ERROR)
    try:
        with av.logging.Capture() as said, av.open(str(path)) as video:
            for packet in video.demux(video=0):
                try:
                    packet.decode()
                except av.error.FFmpegError:
                    continue
    finally:
        av.logging.set_level(before)
    assert said  # FFmpeg has something to say of this file
    done = headrace("run", mean_config(), path, "-o", "a.jsonl", "-o", "b.mp4", cwd=tmp_path)
    assert "damaged" in done.stderr
    assert not RAW.search(done.stderr)
    assert not [text for _, _, text in said if text.strip() in done.stderr]


@pytest.mark.parametrize("head", ["HeadraceParseDetrSoftmax", "coverage"])
def test_numpys_warnings_about_wild_outputs_are_not_shown(tmp_path: Path, head: str) -> None:
    wild = np.float32([3e38, np.inf, -np.inf, np.nan, -3e38, 1, 0, 88])
    keys: dict[str, object] = {"parse_bbox_func_name": head, "cluster_mode": 4}
    shapes = {"logits": (1, 20, 3), "boxes": (1, 20, 4)}
    if head == "coverage":  # the head of a config that names none
        keys = {"cluster_mode": 2, "output_blob_names": "conv2d_bbox;conv2d_cov/Sigmoid"}
        shapes = {"conv2d_bbox": (1, 8, 2, 2), "conv2d_cov/Sigmoid": (1, 2, 2, 2)}
    values = {f"{name}_": np.resize(wild, shape) for name, shape in shapes.items()}
    nodes = [node("Identity", [f"{name}_"], [name]) for name in shapes]
    nodes.append(node("Identity", ["input"], ["seen"]))
    shown = {"seen": (1, 3, 32, 32)}
    write_model(tmp_path / "a.onnx", nodes, {"input": (1, 3, 32, 32)}, shapes | shown, values)
    config = write_config(tmp_path, onnx_file="a.onnx", num_detected_classes=2, **keys)
    done = headrace("run", config, image(tmp_path / "a.png"), "-o", "a.jsonl", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert not RAW.search(done.stderr)


FAILING = """
def unruly(layers, network, params):
    {line}
    return parse(layers, network, params)
"""


def unruly(write: Config, line: str) -> Path:
    return write(parse_bbox_func_name="unruly", parser=FAILING.format(line=line))


@pytest.mark.parametrize("guard", ["never", "always"])
def test_a_parser_that_raises_keyboardinterrupt_fails_and_does_not_end_the_run(
    mean_config: Config, tmp_path: Path, guard: str
) -> None:
    line = "if layers['mean'].data[0] > 0.5: raise KeyboardInterrupt"
    (tmp_path / "in").mkdir()
    for i, level in enumerate((255, 20, 255, 30)):
        Image.new("RGB", (64, 48), (level, 0, 0)).save(tmp_path / f"in/{i}.png")
    config = unruly(mean_config, line)
    done = headrace("run", config, "in", "-o", "a.jsonl", "--guard", guard, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "the parser raised KeyboardInterrupt" in done.stderr
    assert "2 of 4 outputs of config.txt could not be parsed" in done.stdout + done.stderr
    assert (tmp_path / "a.jsonl").read_text().count("\n") == 4


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("import sys; sys.stdout.close()", "standard output is closed"),
        ("import sys; sys.stderr.close()", ""),
        ("import os; os.close(1) if params.num_classes else 0; params", "standard output"),
    ],
)
@pytest.mark.sampled
def test_output_that_a_parser_closes_is_an_error_and_no_traceback(
    mean_config: Config, tmp_path: Path, line: str, words: str
) -> None:
    config = unruly(mean_config, line)
    path = image(tmp_path / "a.png")
    words_of_run = "run", config, path, "-o", "a.jsonl", "--guard", "never"
    done = warm.headrace(*words_of_run, cwd=tmp_path)
    assert done.returncode == 6, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert (tmp_path / "a.jsonl").read_text().count("\n") == 1
    guarded = headrace("run", config, path, "-o", "b.jsonl", "--guard", "always", cwd=tmp_path)
    assert guarded.returncode == 0, guarded.stderr
    assert "found 1 thing" in guarded.stdout


@pytest.mark.parametrize(
    "words",
    [
        ["rtmp://127.0.0.1:9/live/SECRET", "-o", "a.jsonl"],
        ["rtmp:/127.0.0.1:9/live/SECRET", "-o", "a.jsonl"],
        ["in.png", "-o", "rtmp://127.0.0.1:9/live/SECRET"],
        ["rtmps://127.0.0.1:9/live/SECRET?user=a&pass=SECRET", "-o", "a.jsonl"],
        ["--pipeline"],
    ],
)
def test_the_stream_key_of_an_rtmp_path_is_never_printed(
    mean_config: Config, tmp_path: Path, words: list[str]
) -> None:
    config = mean_config()
    image(tmp_path / "in.png")
    if words == ["--pipeline"]:
        text = "models: config.txt\nsources: rtmp://127.0.0.1:9/live/SECRET\nsinks: [a.jsonl\n"
        (tmp_path / "p.yml").write_text(text)
        done = headrace("run", "p.yml", cwd=tmp_path)
    else:
        done = headrace("run", config, *words, cwd=tmp_path)
    assert done.returncode != 0
    assert "SECRET" not in done.stdout + done.stderr
    assert not any("SECRET" in p.read_text() for p in tmp_path.glob("*.jsonl"))


def test_garbage_is_looked_for_soon_once_a_program_has_begun(tmp_path: Path) -> None:
    program = tmp_path / "long.py"
    program.write_text(
        "import gc\n"
        "before = gc.get_threshold()[0]\n"
        "kept = [[] for _ in range(before + 1)]\n"
        "print(before, gc.get_threshold()[0])\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "headrace", "exec", str(program)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split() == ["200000", "10000"]
