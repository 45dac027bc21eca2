"""Broken sources among good ones: the good ones give what they give alone."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace.cli.inputs import spec_of
from headrace.cli.run import execute
from headrace.errors import MediaError, StrictError
from headrace.media import open_source
from headrace.pipeline.report import RunReport
from tests.infer.scenes import classifier
from tests.media.conftest import write_clip

Config = Callable[..., Path]


@pytest.fixture
def models(mean_config: Config) -> list[str]:
    """A detector and a classifier of what it finds."""
    primary = mean_config(batch_size=8)
    primary.rename(primary.with_name("primary.txt"))
    labels = primary.with_name("labels.txt").read_text()
    secondary = classifier(mean_config, labelfile_path="colors.txt", classifier_threshold=0.1)
    secondary.with_name("colors.txt").write_text("red;green;blue\n")
    primary.with_name("labels.txt").write_text(labels)
    return [str(primary.with_name("primary.txt")), str(secondary)]


def run(
    models: Sequence[str], sources: Sequence[Path | str], out: Path, **options: Any
) -> RunReport:
    spec = spec_of([*models, *map(str, sources)], [f"jsonl:{out}/{{source}}.jsonl"], "iou")
    return execute(spec, quiet=True, **options)


def lines(path: Path) -> list[dict[str, Any]]:
    """What is in a file, without ids of sources and tracks: those count all sources."""
    read = [json.loads(line) for line in path.read_text().splitlines()]
    for frame in read:
        frame.pop("source_id")
        for thing in frame["objects"]:
            thing.pop("object_id", None)
    return read


@pytest.mark.slow
def test_good_ones_among_broken_ones_give_what_they_give_alone(
    models: list[str], tmp_path: Path
) -> None:
    good = [
        write_clip(tmp_path / f"good{i}.mp4", n, size=(64 + 16 * i, 48))
        for i, n in enumerate((30, 45))
    ]
    whole = good[0].read_bytes()
    no_index, garbage, empty = (tmp_path / f"{n}.mp4" for n in ("no_index", "garbage", "empty"))
    no_index.write_bytes(whole[: len(whole) // 2])
    garbage.write_bytes(np.random.default_rng(1).bytes(50_000))
    empty.touch()
    cut = write_clip(tmp_path / "cut.mkv", 200)
    cut.write_bytes(cut.read_bytes()[: cut.stat().st_size // 2])
    gone = "http://user:secret@127.0.0.1:9/x.mp4"
    alone = [run(models, [path], tmp_path / "alone") for path in good]
    assert [r.frames for r in alone] == [30, 45]
    sources = [garbage, good[0], no_index, empty, gone, good[1], cut]
    report = run(models, sources, tmp_path / "all")
    for path in good:
        name = path.with_suffix(".jsonl").name
        assert lines(tmp_path / "all" / name) == lines(tmp_path / "alone" / name)
    states = [s.state for s in report.sources]
    assert states == ["failed", "ended", "failed", "failed", "failed", "ended", "ended"]
    assert [s.frames for s in report.sources][1::4] == [30, 45]
    told = "\n".join(map(str, report.notices))
    assert "secret" not in told
    assert "index" in told
    assert "it may be cut off" in told
    for source in report.sources:
        if source.state == "failed":
            assert told.count(f"{source.name}: failed after 0 frames") == 1


def test_if_no_source_can_be_opened_the_first_error_ends_it(
    models: list[str], tmp_path: Path
) -> None:
    for name in "ab":
        (tmp_path / f"{name}.mp4").write_bytes(b"\x00" * 100)
    with pytest.raises(MediaError, match=r"a\.mp4"):
        run(models, [tmp_path / "a.mp4", tmp_path / "b.mp4"], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_wrong_name_or_strict_ends_it_before_it_begins(models: list[str], tmp_path: Path) -> None:
    good = write_clip(tmp_path / "good.mp4")
    with pytest.raises(MediaError, match="no such file"):
        run(models, [good, tmp_path / "goood.mp4"], tmp_path / "out")
    (tmp_path / "bad.mp4").write_bytes(b"\x00" * 100)
    with pytest.raises(StrictError, match="failed after 0 frames"):
        run(models, [good, tmp_path / "bad.mp4"], tmp_path / "out", strict=True)
    assert not (tmp_path / "out").exists()


def test_a_pipe_that_is_written_slowly_loses_nothing(models: list[str], tmp_path: Path) -> None:
    import threading
    import time

    clip = write_clip(tmp_path / "slow.mkv", 40)
    good = write_clip(tmp_path / "good.mp4", 30)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def write() -> None:
        data = clip.read_bytes()
        with pipe.open("wb", 0) as file:
            for at in range(0, len(data), 500):
                file.write(data[at : at + 500])
                time.sleep(0.02)

    thread = threading.Thread(target=write)
    thread.start()
    report = run(models, [good, pipe], tmp_path / "out")
    thread.join()
    assert [(s.frames, s.state) for s in report.sources] == [(30, "ended"), (40, "ended")]


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_a_cut_recording_without_an_exact_count_is_told(share: float, tmp_path: Path) -> None:
    clip = write_clip(tmp_path / "clip.mkv", 120)
    clip.write_bytes(clip.read_bytes()[: int(clip.stat().st_size * share)])
    with open_source(str(clip)) as source:
        assert source.frames == 120
        count = sum(1 for _ in source)
        told = any("may be cut off" in n.sentence for n in source.notices)
    assert told == (count < 108) == (share < 1)


def test_a_video_without_frames_is_not_among_the_outputs(models: list[str], tmp_path: Path) -> None:
    good = write_clip(tmp_path / "good.mp4")
    (tmp_path / "bad.mp4").write_bytes(b"\x00" * 100)
    spec = spec_of([*models, str(good), str(tmp_path / "bad.mp4")], [f"{tmp_path}/{{source}}.mkv"])
    report = execute(spec, quiet=True)
    assert report.outputs == [str(tmp_path / "good.mkv")]
    assert not (tmp_path / "bad.mkv").exists()
