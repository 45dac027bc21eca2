"""`--processes auto`: which trials are made, what is chosen of them, and what a trial runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from PIL import Image

from headrace.cli.inputs import spec_of
from headrace.config import PipelineSpec
from headrace.config.pipeline_spec import SinkSpec, SourceSpec
from headrace.infer.run_options import RunOptions
from headrace.media.sinks.opening import split_spec
from headrace.pipeline import process_count
from headrace.pipeline.process_count import ProcessCount, ShortRun, choose_processes, trial_spec
from headrace.pipeline.shares import SharedRun

Config = Callable[..., Path]


@pytest.fixture(autouse=True)
def _a_driver_and_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_count, "driver_is_there", lambda: True)
    monkeypatch.setattr(process_count, "usable_cores", lambda: 16)


def videos(count: int, *sinks: SinkSpec, live: bool | None = None) -> PipelineSpec:
    source = SourceSpec(uri="/videos/street.mp4", repeat=count, live=live)
    return PipelineSpec(sources=(source,), sinks=sinks)


def chosen(
    spec: PipelineSpec, device: str = "auto", **trials: ShortRun | int
) -> tuple[ProcessCount, list[int]]:
    made: list[int] = []

    def measure(count: int) -> ShortRun:
        made.append(count)
        trial = trials[f"n{count}"]
        return ShortRun(float(trial)) if isinstance(trial, int) else trial

    return choose_processes(lambda: spec, RunOptions(device=device), measure=measure), made


@pytest.mark.parametrize(
    ("rates", "made", "count"),
    [
        ({"n4": 100, "n8": 150, "n16": 151}, [4, 8, 16], 8),
        ({"n4": 100, "n8": 150, "n16": 170}, [4, 8, 16], 16),
        ({"n4": 100, "n8": 101, "n2": 90}, [4, 8, 2], 4),
        ({"n4": 100, "n8": 90, "n2": 99, "n1": 60}, [4, 8, 2, 1], 2),
        ({"n4": 100, "n8": 90, "n2": 99, "n1": 98}, [4, 8, 2, 1], 1),
        ({"n4": ShortRun(80.0, whole=False)}, [4], 4),
        ({"n4": ShortRun(80.0, on_gpu=False)}, [4], 1),
    ],
)
def test_more_processes_are_taken_while_they_are_faster(
    rates: dict[str, int | ShortRun], made: list[int], count: int
) -> None:
    choice, trials = chosen(videos(40), **rates)
    assert (trials, choice.processes) == (made, count)
    assert choice.notice.data["processes"] == count


def test_no_more_than_sources_and_each_gpu_alike() -> None:
    assert chosen(videos(3), n2=10, n1=5)[1] == [2, 1]
    assert chosen(videos(1))[1] == []
    choice, trials = chosen(videos(40), "cuda:0,cuda:1", n8=10, n16=9, n4=5)
    assert (choice.processes, trials) == (8, [8, 16, 4])


def test_nothing_is_measured_on_the_cpu_and_of_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [chosen(videos(n, live=True))[0].processes for n in (2, 20, 200)] == [1, 2, 4]
    assert chosen(videos(40), "cpu")[0].processes == 1
    monkeypatch.setattr(process_count, "driver_is_there", lambda: False)
    choice, trials = chosen(videos(40))
    assert (choice.processes, trials) == (1, [])


def test_a_trial_writes_into_its_folder_and_sends_nothing() -> None:
    sinks = (
        SinkSpec(path=Path("/a/out.jsonl")),
        SinkSpec(kind="images", path=Path("/b/drawn")),
        SinkSpec(path=Path("/{id}/%03d.png")),
        SinkSpec(kind="publish", uri="rtsp://host/{id}"),
        SinkSpec(path=Path("/a/of_35.mp4"), source=35),
    )
    spec = videos(40, *sinks).changed(append=True)
    trial = trial_spec(lambda: spec, "/trial")
    assert len(trial.sources) == 32
    assert [split_spec(str(sink.text)) for sink in trial.sinks] == [
        ("jsonl", Path("/trial/0/a/out.jsonl")),
        ("images", Path("/trial/1/b/drawn")),
        ("images", Path("/trial/2/{id}/%03d.png")),
    ]
    assert not trial.append


@pytest.mark.slow
def test_a_trial_of_a_run_leaves_nothing(
    mean_config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = mean_config()
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        for number in range(5):
            Image.new("RGB", (64, 48)).save(tmp_path / name / f"{number}.png")
    before = set(tmp_path.rglob("*"))
    inputs = [str(config), str(tmp_path / "a"), str(tmp_path / "b")]
    make_spec = partial(spec_of, inputs, [str(tmp_path / "out.jsonl")])
    trial = process_count._trial(make_spec, RunOptions(device="cpu"), 2)
    assert trial.rate > 0
    assert not trial.whole
    assert not trial.on_gpu
    assert {p for p in tmp_path.rglob("*") if p.suffix != ".engine"} == before


@pytest.mark.slow
def test_sources_that_have_given_a_frame_are_counted(mean_config: Config, tmp_path: Path) -> None:
    config = mean_config()
    for name, count in (("a", 2), ("b", 1), ("c", 1)):
        (tmp_path / name).mkdir()
        for number in range(count):
            Image.new("RGB", (64, 48)).save(tmp_path / name / f"{number}.png")
    inputs = [str(config), *(str(tmp_path / name) for name in "abc")]
    shared = SharedRun(partial(spec_of, inputs), RunOptions(device="cpu"), 2)
    shared.begin()
    assert shared.begun == 0
    assert shared.run().frames == 4
    assert shared.begun == 3
