"""Outputs that would destroy what a run reads, that cannot be written, or whose disk is full."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.cli.inputs import spec_of
from headrace.cli.run import execute
from headrace.errors import MediaError
from tests.media.conftest import write_clip

Config = Callable[..., Path]


def digest(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize(
    "out",
    [
        "{folder}/clip.mp4",
        "{folder}/{{source}}.mp4",
        "{folder}/none/../clip.mp4",
        "jsonl:{folder}/{{source}}/../labels.txt",
        "jsonl:{folder}/link.txt",
        "jsonl:{folder}/tracker.yml",
        "jsonl:{folder}/pipe.yml",
        "jsonl:{folder}/config.txt",
        "jsonl:{folder}/mean.onnx",
        "jsonl:{folder}/mean_parser.py",
        "jsonl:{folder}/photos/p1.png",
        "coco:{folder}/photos/p1.png",
        "{folder}/photos/p1.png",
        "images:{folder}/photos",
    ],
)
def test_nothing_that_is_read_is_overwritten(
    out: str, mean_config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from PIL import Image

    monkeypatch.chdir(tmp_path)
    config = mean_config()
    write_clip(tmp_path / "clip.mp4", 2)
    (tmp_path / "photos").mkdir()
    for i in range(3):
        Image.new("RGB", (32, 24), (80 * i, 0, 0)).save(tmp_path / "photos" / f"p{i}.png")
    (tmp_path / "tracker.yml").write_text("tracker: iou\n")
    (tmp_path / "link.txt").symlink_to(tmp_path / "labels.txt")
    execute(spec_of([str(config), str(tmp_path / "clip.mp4")]), quiet=True)  # saves the engine
    pipe = tmp_path / "pipe.yml"
    pipe.write_text(
        f"sources: [{tmp_path}/clip.mp4, {tmp_path}/photos]\nmodels: [{config}]\n"
        f"tracker: {tmp_path}/tracker.yml\nsinks: ['{out.format(folder=tmp_path)}']\n"
    )
    before = digest(tmp_path)
    with pytest.raises(MediaError, match=r"destroyed|overwritten"):
        execute(spec_of([str(pipe)]), quiet=True)
    assert digest(tmp_path) == before


def test_class_maps_do_not_replace_the_images_they_are_of(tmp_path: Path) -> None:
    import numpy as np
    from PIL import Image

    from headrace.infer.batch import frame_meta
    from headrace.media import open_sink, open_source
    from headrace.meta import SegmentationMeta

    Image.new("RGB", (32, 24)).save(tmp_path / "p.png")
    before = digest(tmp_path)
    (frame,) = open_source(f"{tmp_path}/*.png")
    meta = frame_meta(frame)
    meta.segmentations.append(SegmentationMeta(1, 2, np.zeros((24, 32), np.int32)))
    sink = open_sink(f"masks:{tmp_path}")
    with pytest.raises(MediaError, match="overwritten"):
        sink.write(frame, meta)
    assert digest(tmp_path) == before


def test_a_full_disk_ends_the_run_and_keeps_the_other_outputs(
    mean_config: Config, tmp_path: Path
) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("needs /dev/full")
    clip = write_clip(tmp_path / "clip.mp4", 300)
    out = tmp_path / "out.jsonl"
    spec = spec_of([str(mean_config()), str(clip)], [str(out), "jsonl:/dev/full"])
    with pytest.raises(MediaError, match="disk is full"):
        execute(spec, quiet=True)
    lines = out.read_bytes().splitlines(keepends=True)
    assert all(line.endswith(b"}\n") for line in lines)


@pytest.mark.slow
def test_twenty_runs_leave_no_thread_and_no_file_open(mean_config: Config, tmp_path: Path) -> None:
    config = str(mean_config(batch_size=4))
    clips = [str(write_clip(tmp_path / f"{i}.mp4", 3)) for i in range(2)]
    (tmp_path / "bad.mkv").write_bytes(b"\x1aE\xdf\xa3" + bytes(200))
    outs = [str(tmp_path / n) for n in ("out.mp4", "out.jsonl", "{source}.json")]
    spec = spec_of([config, *clips, str(tmp_path / "bad.mkv")], outs, "iou")

    def open_files() -> set[str]:
        links = set()
        for fd in os.listdir("/proc/self/fd"):
            try:
                links.add(f"{fd} {os.readlink(f'/proc/self/fd/{fd}')}")
            except OSError:
                continue
        return links

    execute(spec, quiet=True)
    gc.collect()
    threads, files = threading.active_count(), open_files()
    for _ in range(20):
        execute(spec, quiet=True)
    gc.collect()
    assert threading.active_count() <= threads
    assert len(open_files()) <= len(files), open_files() - files
