"""Published configs of deepstream-app and test5: they load, and run on a video of our own."""

from __future__ import annotations

from pathlib import Path

import pytest

import headrace
from headrace.config import PipelineSpec, load_pipeline
from headrace.config.enums import ProcessMode
from tests.outside.application_configs import configs, read

SCENE = Path(__file__).parents[2] / "examples" / "conveyor"
RIGHT = ("foreign-file", "file-unreadable", "missing-file")  # other programs; files that lack
FRAMES, RUNS, MOST_SOURCES = 3, 40, 4


def test_every_config_loads_or_is_refused_with_right(outside: Path) -> None:
    rows = [read(path) for path in configs(outside)]
    if not rows:
        pytest.skip(f"no configs of applications in {outside}")
    wrong = [(row.path, row.refusal) for row in rows if row.refusal and row.codes[0] not in RIGHT]
    assert [row for row in wrong if not broken(row[0])] == []
    assert sum(not row.refusal for row in rows) > 0.9 * len(rows)


def broken(path: Path) -> bool:
    """Whether GLib refuses the file: a line is no comment, no group and no key=value."""
    lines = [line.strip() for line in path.read_text(errors="replace").splitlines()]
    return path.suffix == ".txt" and any(n and n[0] not in "#[" and "=" not in n for n in lines)


def with_our_models(spec: PipelineSpec, folder: Path) -> PipelineSpec:
    """The pipeline with the scene's video and models in place of those that are not there."""
    sources = [s.changed(uri=str(SCENE / "conveyor.mp4"), loop=False) for s in spec.opened_sources]
    models = []
    for model in spec.models:
        primary = model.process_mode is not ProcessMode.SECONDARY
        name = "config_infer_primary" if primary else "config_infer_secondary_characters"
        models.append(
            model.changed(
                config=SCENE / f"{name}.txt", model_engine_file=None, preprocess=None,
                input_tensor_from_meta=None, operate_on_class_ids=None,
            )
        )  # fmt: skip
    sinks = [
        sink.changed(path=folder / f"{number}.mp4", container="mp4")
        for number, sink in enumerate(spec.sinks) if sink.kind == "video"
    ]  # fmt: skip
    tracker = None if spec.tracker is None else spec.tracker.changed(config=None, name="iou")
    return spec.changed(
        sources=tuple(sources), models=tuple(models), sinks=tuple(sinks), tracker=tracker,
        analytics=None, consumers=(), errors_to=None, keep_open=False, rest=None,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::headrace.HeadraceWarning")
def test_configs_run_as_their_keys_ask_for(outside: Path, tmp_path: Path) -> None:
    ran = 0
    for path in configs(outside):
        if read(path).refusal or ran >= RUNS:
            continue
        spec = load_pipeline(path)
        primary = [m for m in spec.models if m.process_mode is not ProcessMode.SECONDARY]
        if len(spec.opened_sources) > MOST_SOURCES or len(primary) != 1:
            continue
        folder = tmp_path / str(ran)
        folder.mkdir()
        ours = with_our_models(spec, folder)
        metas: list[headrace.FrameMeta] = []
        pipeline = headrace.open_pipeline(ours, limit=FRAMES, device="cpu", on_result=metas.append)
        report = pipeline.run()
        ran += 1
        assert report.frames == FRAMES * len(ours.sources), path
        width, height = ours.frame_size or (metas[0].width, metas[0].height)
        assert {(meta.width, meta.height) for meta in metas} == {(width, height)}, path
        assert any(len(meta.objects) for meta in metas), path
        assert all((folder / sink.path.name).stat().st_size for sink in ours.sinks if sink.path)
    if ran == 0:
        pytest.skip(f"no configs of applications in {outside}")
