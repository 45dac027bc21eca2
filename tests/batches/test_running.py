"""Batches of real pipelines: the mean model over videos and images."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from PIL import Image

import headrace
from headrace.batches.batch_run import BatchRun
from headrace.batches.estimate import TimedInputs, estimated, sample_of
from headrace.batches.identity import differences
from headrace.batches.inputs import expand_inputs
from headrace.batches.units import BatchUnit, UnitResult
from headrace.batches.work import Work, Worker, span_seconds
from headrace.cli import main
from headrace.infer.run_options import RunOptions
from headrace.media.sources.video_structure import video_seconds
from headrace.pipeline.opening import pipeline_spec
from tests.batches.fakes import HereExecutor
from tests.media.sources.videos import B_FRAMES, X264, turned, write_video

Table = list[tuple]


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Units run in this process: starting one takes a second."""

    def executor(
        self: object, work: Work, configs: object, placement: object, folder: object, *_: object
    ) -> HereExecutor:
        return HereExecutor(Worker(work, folder.parts).do)

    monkeypatch.setattr(BatchRun, "_executor", executor)


def run(*words: object) -> Result:
    return CliRunner().invoke(main, ["batch", *map(str, words)], catch_exceptions=False)


def rows(out: Path) -> Table:
    found: Table = []
    for file in (out / "objects").glob("*/*/*.parquet"):
        table = pq.read_table(file, partitioning=None)
        found += [tuple(map(str, row.values())) for row in table.to_pylist()]
    return sorted(found)


def rows_of_run(config: Path, *inputs: Path) -> Table:
    """The same rows by `open_pipeline`, one run for each input."""
    found: Table = []
    for path in inputs:
        with headrace.open_pipeline(config, sources=str(path)) as pipeline:
            metas = [meta for _, meta in pipeline]
        for meta in metas:
            meta.source = str(path)
        found += [tuple(map(str, row.values())) for row in headrace.table.to_rows(metas)]
    return sorted(found)


@pytest.fixture
def videos(tmp_path: Path) -> list[Path]:
    folder = tmp_path / "videos"
    folder.mkdir()
    return [
        write_video(folder / "a.mp4", 20, options=X264, seed=1),
        write_video(folder / "b.mkv", 30, options=B_FRAMES, seed=2),
        write_video(folder / "c.avi", 30, options=B_FRAMES, seed=3),
    ]


def test_a_folder_gives_the_rows_of_single_runs(
    here: None, mean_config: Callable[..., Path], videos: list[Path], tmp_path: Path
) -> None:
    config, out = mean_config(), tmp_path / "out"
    (videos[0].parent / "notes.md").write_text("no video")
    done = run(config, videos[0].parent, "-o", out, "--threads", 2, "-q")
    assert done.exit_code == 0, done.output
    assert "done: 3 inputs, 80 frames, 80 objects" in done.stdout
    assert "read_parquet" not in done.stdout
    assert rows(out) == rows_of_run(config, *videos)
    manifest = pq.read_table(out / "manifest.parquet").to_pylist()
    assert {(r["outcome"], r["frames"], r["objects"]) for r in manifest} == {
        ("done", 20, 20),
        ("done", 30, 30),
    }
    assert len({r["sha256"] for r in manifest}) == 3
    refused = CliRunner().invoke(main, ["batch", str(config), str(videos[0]), "-o", str(out)])
    assert refused.exit_code == 1
    assert "--resume does what is missing there" in refused.stderr
    other = run(config, videos[0], "-o", out, "--resume", "--conf", 0.9)
    assert other.exit_code == 1
    assert "made otherwise: keys set over config 1 has changed" in other.stderr
    again = run(config, videos[0].parent, "-o", out, "--resume", "--threads", 2, "--json")
    assert json.loads(again.stdout)["before"] == 3


def test_split_videos_have_the_rows_of_whole_ones(
    here: None, mean_config: Callable[..., Path], videos: list[Path], tmp_path: Path
) -> None:
    config, out = mean_config(batch_size=4), tmp_path / "out"
    options = ["-o", out, "--threads", 2, "-q", "--split", 0.4]
    done = run(config, *videos, *options)
    assert done.exit_code == 0, done.output
    assert rows(out) == rows_of_run(config, *videos)
    manifest = pq.read_table(out / "manifest.parquet").to_pylist()
    firsts = {Path(r["input"]).name: [] for r in manifest}
    for row in manifest:
        firsts[Path(row["input"]).name].append(row["first_frame"])
    assert sorted(firsts["b.mkv"]) == [0, 12, 24]
    assert firsts["c.avi"] == [None]  # its frames had no times of their own
    assert done.stdout.startswith("done: 6 parts of 3 inputs, 80 frames")
    done = run(config, *videos, "-o", tmp_path / "iou", "--threads", 2, "--tracker", "iou",
               "--split", 0.4)  # fmt: skip
    assert "videos are not split: a tracker follows objects" in done.stderr
    assert done.stdout.startswith("done: 3 inputs")


def test_what_a_source_says_is_told_once_and_stands_with_each_file(
    here: None, mean_config: Callable[..., Path], videos: list[Path], tmp_path: Path
) -> None:
    first = turned(videos[0])
    second = tmp_path / "other.mp4"
    second.write_bytes(first.read_bytes() + b"\0\0\0\x08free")
    out = tmp_path / "out"
    done = run(mean_config(), first, second, "-o", out, "--threads", 1)
    assert done.exit_code == 0, done.output
    assert (done.stdout + done.stderr).count("asks players to turn it") == 1
    manifest = pq.read_table(out / "manifest.parquet").to_pylist()
    assert all("asks players to turn it" in str(row) for row in manifest)


def test_a_tracker_library_that_is_not_loaded_is_named(
    here: None, mean_config: Callable[..., Path], videos: list[Path], tmp_path: Path
) -> None:
    library = tmp_path / "libtracker.so"
    library.write_text("no library")
    done = run(mean_config(), *videos, "-o", tmp_path / "out", "--tracker",
               f"nvmot:library={library}")  # fmt: skip
    assert done.exit_code == 0, done.output
    assert (done.stdout + done.stderr).count("not loaded") == 1


def test_spans_are_shorter_where_inputs_are_few(videos: list[Path], tmp_path: Path) -> None:
    long = [str(write_video(tmp_path / "long.mp4", 6, times=[n * 60_000 for n in range(6)]))]
    assert video_seconds(Path(long[0])) > 500
    assert span_seconds(long, 1) == pytest.approx(video_seconds(Path(long[0])) / 16)
    assert span_seconds(long * 3, 2) == pytest.approx(3 * video_seconds(Path(long[0])) / 32)
    assert span_seconds(list(map(str, videos)), 2) == 5.0
    assert span_seconds([*long, "photo.jpg"], 64) == 5.0
    assert span_seconds(long * 16, 1) == 60.0
    assert span_seconds(long * 12, 1) == 60.0
    assert span_seconds(["s3://bucket/x.mp4", "nowhere.mp4"], 2) == 5.0


def test_broken_inputs_and_parsers_are_recorded_and_the_rest_goes_on(
    here: None, mean_config: Callable[..., Path], videos: list[Path], photos: Path, tmp_path: Path
) -> None:
    config = mean_config(parse_bbox_func_name="fails_on_black")
    (videos[0].parent / "broken.mp4").write_bytes(videos[0].read_bytes()[:300])
    (videos[0].parent / "empty.mkv").write_bytes(b"")
    Image.new("RGB", (64, 48)).save(photos / "black.png")
    listed = tmp_path / "list.txt"
    listed.write_text("# two folders' files\nvideos/*.m*\nphotos/p0.png\nphotos/black.png\n")
    out = tmp_path / "out"
    done = run(config, listed, "-o", out, "--threads", 2, "-q")
    assert done.exit_code == 1
    assert "done: 3 inputs, 51 frames, 51 objects, 3 failed" in done.stdout
    assert "black.png: the only output of config.txt could not be parsed" in done.stderr
    assert "nothing to see" in done.stderr
    assert "is not a video that can be read" in done.stderr
    rows = pq.read_table(out / "manifest.parquet").to_pylist()
    errors = {Path(r["input"]).name: r["error"] for r in rows if r["outcome"] == "failed"}
    assert set(errors) == {"broken.mp4", "empty.mkv", "black.png"}
    attempts = {Path(r["input"]).name: r["attempts"] for r in rows if r["outcome"] == "failed"}
    assert attempts == {"broken.mp4": 1, "empty.mkv": 1, "black.png": 2}  # a parser may recover
    assert all(len(r["sha256"]) == 64 for r in rows)
    checked = run("-o", out, "--verify")
    assert checked.exit_code == 0
    assert checked.stdout.endswith(", 0 faults; 3 inputs done, 3 failed or lost\n")
    shutil.copy(videos[0], videos[0].parent / "broken.mp4")
    again = run(config, listed, "-o", out, "--threads", 2, "--resume")
    assert "6 inputs: 3 done, 3 failed (--retry-failed runs them again), 0 left" in again.stderr
    again = run(config, listed, "-o", out, "--threads", 2, "--resume", "--retry-failed")
    assert "6 inputs: 3 done, 3 left" in again.stderr
    assert "done: 1 input, 20 frames, 20 objects, 2 failed, 3 were done before" in again.stdout


def test_further_outputs_are_files_of_each_input(
    here: None, mean_config: Callable[..., Path], videos: list[Path], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    done = run(mean_config(), videos[0], "-o", out, "--jsonl", "--coco", "--video", "--threads", 2)
    assert done.exit_code == 0, done.output
    assert (
        "videos are not split: each input has one file of its own for jsonl and coco and video"
        in done.stderr
    )
    (lines,) = (out / "jsonl").iterdir()
    assert lines.name.startswith("a-")
    assert len(lines.read_text().splitlines()) == 20
    (coco,) = (out / "coco").iterdir()
    assert len(json.loads(coco.read_text())["images"]) == 20
    assert f"read_parquet('{out}/objects')" in done.stdout
    assert f"headrace batch report {out}" in done.stdout
    (video,) = (out / "video").iterdir()
    with headrace.open_source(str(video)) as source:
        assert source.frames == 20
    assert run("-o", out, "--verify").stdout == "5 result files read, 0 faults; 1 input done\n"
    video.unlink()
    checked = run("-o", out, "--verify")
    assert checked.exit_code == 1
    assert "is gone" in checked.stderr
    assert checked.stdout.endswith("1 faults; 0 inputs done, 1 failed or lost\n")


def test_plan_times_a_few_and_writes_nothing(
    mean_config: Callable[..., Path], videos: list[Path], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    done = run(mean_config(), videos[0].parent, "-o", out, "--plan", "--threads", 1, "-q")
    assert done.exit_code == 0, done.output
    assert "3 inputs, 3 timed: about 80 frames" in done.stdout
    assert "on this machine: " in done.stdout
    assert not out.exists()


def test_images_and_videos_are_estimated_apart(tmp_path: Path) -> None:
    """Of sixty images and four videos one is not timed for the other, with sizes and without."""
    names = [f"s3://b/{n:02}.jpg" for n in range(60)] + [f"s3://b/{n}.mp4" for n in range(4)]
    sample = sample_of(names)
    assert sample.kinds == ((4, 0), (60, 0))
    assert [name.endswith(".mp4") for name in sample.names] == [True] * 3 + [False] * 2
    results = [
        UnitResult(BatchUnit(name), "done", frames=100, seconds=10.0, size_bytes=5_000_000)
        if name.endswith(".mp4")
        else UnitResult(BatchUnit(name), "done", frames=1, seconds=0.1, size_bytes=1000)
        for name in sample.names
    ]
    machine = {"cores": 2, "workers": 1, "threads": 1, "memory_bytes": 1}
    for kinds in (sample.kinds, ((4, 20_000_000), (60, 60_000))):
        made = estimated(results, [7] * 5, sample=TimedInputs(sample.names, kinds), **machine)
        assert (made.inputs, made.frames) == (64, 460)
        assert made.seconds == pytest.approx((46.0, 46.0, 46.0))
    assert sample_of(names[:60]).names == tuple(names[n] for n in (0, 8, 24, 32, 48))
    assert len(sample_of(names[60:]).names) == 4


def test_keywords_are_those_of_other_calls(
    here: None, mean_config: Callable[..., Path], videos: list[Path], tmp_path: Path
) -> None:
    config = mean_config()
    report = headrace.batch(config, inputs=videos[:1], out=tmp_path / "a", conf=1, threads=2)
    assert report.progress.objects == 0
    assert report.to_dict()["total"] == {"done": 1}
    with pytest.raises(headrace.errors.ConfigError, match="treshold"):
        headrace.batch(config, inputs=videos[:1], out=tmp_path / "b", treshold=1)
    with pytest.raises(headrace.HeadraceError, match="are no outputs of a batch"):
        headrace.batch(config, inputs=videos[:1], out=tmp_path / "b", outputs=["xml"])
    with pytest.raises(headrace.HeadraceError, match="mars is no place to run"):
        headrace.batch(config, inputs=videos[:1], out=tmp_path / "b", on="mars")


def test_a_pipeline_file_names_models_and_inputs(
    here: None, mean_config: Callable[..., Path], videos: list[Path], tmp_path: Path
) -> None:
    mean_config()
    (tmp_path / "pipeline.yml").write_text(
        "sources: videos/a.mp4\nmodels: config.txt\nsinks: [tiles.mp4]\n"
    )
    done = run(tmp_path / "pipeline.yml", "-o", tmp_path / "out", "--threads", 2)
    assert done.exit_code == 0, done.output
    assert "done: 1 input, 20 frames" in done.stdout
    assert "the outputs of the pipeline file are not written" in done.stderr
    assert not (tmp_path / "tiles.mp4").exists()
    done = run(tmp_path / "pipeline.yml", videos[1], "-o", tmp_path / "two", "--threads", 2)
    assert "done: 1 input, 30 frames" in done.stdout


WITHOUT_PROGRAMS = (
    "import subprocess; subprocess.Popen = None; from headrace.cli import main; main()"
)


def test_workers_of_the_command_are_forked_from_itself(
    mean_config: Callable[..., Path], videos: list[Path], tmp_path: Path
) -> None:
    words = ["batch", mean_config(), videos[0], "-o", tmp_path / "out", "-q"]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_PROGRAMS, *map(str, words)], capture_output=True, text=True
    )
    assert "done: 1 input" in done.stdout, done.stderr


def test_results_below_the_inputs_are_no_inputs(
    here: None, mean_config: Callable[..., Path], videos: list[Path]
) -> None:
    folder = videos[0].parent
    config = mean_config()
    done = run(config, folder, "-o", folder / "out", "--video", "--threads", 2, "-q")
    assert "done: 3 inputs" in done.stdout
    done = run(config, folder, "-o", folder / "out", "--video", "--threads", 2, "-q", "--resume")
    assert "nothing was left to do: 3 were done before\n" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("guard", ["always", "never"])
def test_a_parser_that_ends_its_process_costs_its_unit_alone(
    mean_config: Callable[..., Path], videos: list[Path], tmp_path: Path, guard: str
) -> None:
    dies = (
        "import os\n\ndef dies_on_black(layers, network, params):\n"
        "    (layer,) = layers.values()\n"
        "    if layer.data[0] == 0:\n        os.abort()\n"
        "    return parse(layers, network, params)\n"
    )
    config = mean_config(parse_bbox_func_name="dies_on_black", parser=dies)
    Image.new("RGB", (64, 48)).save(videos[0].parent / "black.png")
    report = headrace.batch(
        config, inputs=videos[0].parent, out=tmp_path / "out", workers=1, guard=guard
    )
    assert (report.progress.done, report.progress.failed) == (3, 1)
    ((name, text),) = report.progress.errors
    assert name.endswith("black.png")
    if guard == "always":
        assert "the function aborted (SIGABRT)" in text
        assert "its inputs are saved; to repeat the call: headrace replay" in text
    else:
        assert text == "its worker process was killed by SIGABRT"
    expected = rows_of_run(config, *videos)
    assert rows(tmp_path / "out") == expected


@pytest.mark.slow
def test_a_real_worker_process(
    mean_config: Callable[..., Path], videos: list[Path], tmp_path: Path
) -> None:
    config = mean_config()
    report = headrace.batch(
        config, inputs=videos[:2], out=tmp_path / "out", workers=1, threads=1, split_s=0
    )
    assert report.complete
    assert (report.progress.done, report.progress.frames) == (2, 50)
    assert rows(tmp_path / "out") == rows_of_run(config, *videos[:2])


def test_results_that_cannot_be_written_are_no_fault_of_the_input(
    mean_config: Callable[..., Path], videos: list[Path], tmp_path: Path
) -> None:
    spec = pipeline_spec(configs=[mean_config()], sources=["x"])
    worker = Worker(Work(spec, RunOptions()), tmp_path / "gone")
    unit = BatchUnit(str(videos[0]))
    assert worker.do(unit).outcome == "storage"
    (tmp_path / "gone").mkdir()
    result = worker.do(unit)
    assert result.outcome == "done"
    worker.close()
    assert set((tmp_path / "gone").iterdir()) == set(result.files.values())


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["CONFIG"], "Missing argument 'INPUT...'"),
        ([], "Missing argument 'CONFIG... INPUT...'"),
        (["video.mp4", "CONFIG"], "configs come first"),
        (["CONFIG", "nowhere.mp4"], "there is no such file"),
        (["CONFIG", "rtsp://camera/1"], "is a stream, which has no end"),
        (["CONFIG", "nowhere/*.mp4"], "the pattern matches no file"),
    ],
)
def test_wrong_words_are_refused_before_anything_is_made(
    mean_config: Callable[..., Path], tmp_path: Path, words: list[str], text: str
) -> None:
    config, out = mean_config(), tmp_path / "out"
    done = run(*[config if word == "CONFIG" else word for word in words], "-o", out)
    assert done.exit_code in (2, 6)
    assert text in done.stderr
    assert not out.exists()


def test_models_that_are_gone_end_the_run_and_leave_no_empty_results(
    mean_config: Callable[..., Path], videos: list[Path], tmp_path: Path
) -> None:
    config = mean_config(parse_bbox_func_name="fails_on_black")
    Image.new("RGB", (64, 48)).save(tmp_path / "black.png")
    worker = Worker(Work(pipeline_spec(configs=[config], sources=["x"]), RunOptions()), None)
    for model in tmp_path.glob("mean.onnx*"):
        model.unlink()
    for _ in range(2):
        with pytest.raises(headrace.errors.ConfigError, match="there is no such file"):
            worker.do(BatchUnit(str(tmp_path / "black.png")))
    mean_config(parse_bbox_func_name="fails_on_black")
    assert worker.do(BatchUnit(str(videos[0]))).objects == 20
    worker.close()


def test_inputs_come_from_folders_lists_and_manifests(tmp_path: Path) -> None:
    import pyarrow as pa

    (tmp_path / "sub").mkdir()
    for name in ("b_10.mp4", "b_2.mp4", "sub/c.jpg", "notes.txt", ".hidden.mp4"):
        (tmp_path / name).write_text("x")
    names = [str(tmp_path / name) for name in ("b_2.mp4", "b_10.mp4", "sub/c.jpg")]
    assert list(expand_inputs([str(tmp_path)])) == names
    assert list(expand_inputs([str(tmp_path), names[0]])) == names
    table = tmp_path / "inputs.csv"
    table.write_text("id,input\n1,b_2.mp4\n2,s3://bucket/x.mp4\n")
    assert list(expand_inputs([str(table)])) == [names[0], "s3://bucket/x.mp4"]
    pq.write_table(pa.table({"input": ["sub/c.jpg"]}), tmp_path / "inputs.parquet")
    assert list(expand_inputs([str(tmp_path / "inputs.parquet")])) == [names[2]]
    pq.write_table(pa.table({"path": ["sub/c.jpg"]}), tmp_path / "wrong.parquet")
    with pytest.raises(headrace.errors.MediaError, match="no column 'input'"):
        list(expand_inputs([str(tmp_path / "wrong.parquet")]))
    (tmp_path / "bad.parquet").write_text("x")
    with pytest.raises(headrace.errors.MediaError, match="no Parquet file"):
        list(expand_inputs([str(tmp_path / "bad.parquet")]))


def test_a_file_runs_once_however_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    for name in ("a.mp4", "b.mp4"):
        (tmp_path / "in" / name).touch()
    words = ["./in", "in/a.mp4", "./in//b.mp4", "./in/*.mp4", str(tmp_path / "in" / "a.mp4")]
    assert list(expand_inputs(words)) == ["in/a.mp4", "in/b.mp4"]
    (tmp_path / "lists").mkdir()
    listed = tmp_path / "lists" / "videos.txt"
    listed.write_text("../in/a.mp4\n../in/b.mp4\n")
    assert list(expand_inputs(["in", str(listed)])) == ["in/a.mp4", "in/b.mp4"]
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "link").symlink_to(tmp_path / "in")
    with pytest.raises(headrace.errors.MediaError, match="links to folders are not entered"):
        list(expand_inputs(["linked"]))


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("", "there are none"),
        ("name\nx\n", "there are name"),
        ("input\na.mp4,\n\n" + "y" * 200_000, "m.csv:4: is no CSV that can be read: field larger"),
        ("id,input\n1,a.mp4\n2\n", "row 2: None is no input"),
    ],
)
def test_manifests_that_are_none_are_refused(tmp_path: Path, content: str, text: str) -> None:
    (tmp_path / "m.csv").write_text(content)
    with pytest.raises(headrace.errors.MediaError) as caught:
        list(expand_inputs([str(tmp_path / "m.csv")]))
    assert text in str(caught.value)


def test_strange_names_are_inputs_and_what_is_no_file_is_told(
    here: None, mean_config: Callable[..., Path], tmp_path: Path
) -> None:
    folder = tmp_path / "videos"
    folder.mkdir()
    video = write_video(folder / "new\nline.mp4", 5, options=X264)
    for name in ("-dash.mp4", "esc\x1b[31m.mp4", "a[b]*.mp4", os.fsdecode(b"\xff.mp4")):
        shutil.copy(video, folder / name)
    os.mkfifo(folder / "pipe.mp4")
    listed = tmp_path / "list.txt"
    listed.write_text(f"{folder}/none*.mp4\n")
    done = run(mean_config(), folder, listed, "-o", tmp_path / "out", "--threads", 2, "-q")
    assert "done: 5 inputs, 25 frames, 25 objects, 2 failed" in done.stdout, done.output
    assert "pipe.mp4: is no file" in done.stderr
    assert "none*.mp4: cannot be read: No such file or directory" in done.stderr
    assert {Path(row[0]).name for row in rows(tmp_path / "out")} == {
        "new\nline.mp4", "-dash.mp4", "esc\x1b[31m.mp4", "a[b]*.mp4", "\ufffd.mp4",
    }  # fmt: skip


def test_pyarrow_is_asked_for_by_name(
    mean_config: Callable[..., Path], videos: list[Path], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    config = mean_config()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(headrace.errors.MissingExtraError, match="pyarrow is not installed"):
        headrace.batch(config, inputs=videos[0], out=tmp_path / "out")


def test_an_option_that_one_run_alone_has_is_said_in_words() -> None:
    found = differences({"option palette": "auto", "a": "1"}, {"a": "2", "b": "x"})
    assert found == [
        "a: 1 in the earlier run, 2 now",
        "b counts now, and did not in the earlier run",
        "option palette counted in the earlier run alone",
    ]
