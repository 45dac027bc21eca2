"""`open_pipeline`: the whole of `headrace run` in one call."""

from __future__ import annotations

import asyncio
import gc
import json
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace
from headrace.config import load_pipeline
from headrace.errors import ConfigError, HeadraceError, MediaError, ParserError, StrictError
from headrace.pipeline.opening import pipeline_spec
from tests.infer.recognise.models import cells, pixel_rows, rows_of

Config = Callable[..., Path]


def secondary(config: Path) -> Path:
    """A second config of the same model, on the objects of the first."""
    path = config.with_name("second.txt")
    text = config.read_text().replace("gie-unique-id=1", "gie-unique-id=2\nprocess-mode=2")
    path.write_text(text)
    return path


def test_a_loop_sees_tracked_objects_and_files_are_written(
    mean_config: Config, photos: Path, tmp_path: Path
) -> None:
    out = tmp_path / "o.jsonl"
    pipeline = headrace.open_pipeline(
        mean_config(), sources=photos, tracker="iou:min_hits=1", outputs=[out]
    )
    seen = [(f.frame, obj.label, obj.track_id) for f, meta in pipeline for obj in meta.objects]
    assert seen == [(0, "thing", 1), (1, "thing", 1), (2, "thing", 1)]
    assert len(out.read_text().splitlines()) == 3
    assert pipeline.report.outputs == [str(out)]


def test_a_missing_video_of_a_file_is_named_with_its_line(
    mean_config: Config, tmp_path: Path
) -> None:
    path = tmp_path / "pipeline.yml"
    path.write_text(f"models: [{mean_config()}]\nsources:\n- nowhere.mp4\n")
    with pytest.raises(MediaError, match=r"no such file.*nowhere\.mp4") as refusal:
        headrace.open_pipeline(path)
    assert refusal.value.where == f"{path}:3"
    assert "behind the file" in str(refusal.value)


def test_it_closes_the_engines_it_opened_and_no_others(mean_config: Config, photos: Path) -> None:
    config = mean_config()
    own = headrace.open_pipeline(config, sources=photos)
    own.run()
    with pytest.raises(HeadraceError, match="closed"):
        own.models[0](photos / "p0.png")
    with headrace.Inferencer.from_config(config) as model:
        headrace.open_pipeline(model, sources=photos).run()
        assert len(model(photos / "p0.png").objects) == 1


def test_nothing_of_a_run_waits_for_the_garbage_collector(
    mean_config: Config, photos: Path
) -> None:
    """The command line freezes it at its end: native objects would be reported as leaks."""
    pipeline = headrace.open_pipeline(mean_config(), sources=photos)
    pipeline.run()
    (model,) = [stage for stage in pipeline.stages if isinstance(stage, headrace.Inferencer)]
    alive = [weakref.ref(pipeline), weakref.ref(model), weakref.ref(model.model)]
    gc.collect()
    gc.disable()
    try:
        del pipeline, model
        assert [ref() for ref in alive] == [None] * 3
    finally:
        gc.enable()


def test_a_pipeline_that_never_runs_is_closed_by_with(mean_config: Config, photos: Path) -> None:
    with headrace.open_pipeline(mean_config(), sources=photos) as pipeline:
        model = pipeline.models[0]
    assert pipeline.state == "done"
    with pytest.raises(HeadraceError, match="closed"):
        model(photos / "p0.png")


def test_leaving_the_loop_closes_everything(
    mean_config: Config, photos: Path, tmp_path: Path
) -> None:
    out = tmp_path / "o.jsonl"
    pipeline = headrace.open_pipeline(mean_config(), sources=photos, outputs=out)
    for frame, _ in pipeline:
        if frame.frame == 1:
            break
    assert pipeline.state == "done"
    assert len(out.read_text().splitlines()) == 2
    with pytest.raises(HeadraceError, match="closed"):
        pipeline.models[0](photos / "p0.png")
    pipeline.close()  # once more is nothing
    with pytest.raises(HeadraceError, match="has run already"):
        pipeline.run()


def test_tables_are_made_of_a_pipeline(mean_config: Config, photos: Path) -> None:
    rows = headrace.table.to_rows(headrace.open_pipeline(mean_config(), sources=photos))
    assert [(row["frame"], row["label"]) for row in rows] == [(i, "thing") for i in range(3)]


def test_probes_stand_where_they_are_given(mean_config: Config, photos: Path) -> None:
    config = mean_config()
    seen: list[tuple[str, int]] = []

    def before(batch: headrace.Batch) -> None:
        seen.extend(("before", len(meta.objects)) for meta in batch.metas)

    def between(batch: headrace.Batch) -> None:
        seen.extend(("between", len(meta.objects)) for meta in batch.metas)

    pipeline = headrace.open_pipeline(
        before, config, between, secondary(config), sources=photos, limit=1
    )
    ((_, meta),) = pipeline
    assert seen == [("before", 0), ("between", 1)]
    assert [obj.component_id for obj in meta.objects] == [1, 2]
    assert meta.objects[1].parent == meta.objects[0]


def test_a_tracker_comes_behind_the_last_primary_model(mean_config: Config, photos: Path) -> None:
    config = mean_config()
    for tracker in ("iou", headrace.open_tracker("iou")):
        pipeline = headrace.open_pipeline(
            config, secondary(config), sources=photos, tracker=tracker
        )
        names = [getattr(stage, "name", None) for stage in pipeline.stages]
        assert names == ["config.txt", "iou", "second.txt"]
        pipeline.close()


def test_configs_changed_by_a_program_and_images_in_memory(mean_config: Config) -> None:
    config = headrace.ModelConfig.load(mean_config()).with_overrides(interval=1)
    images = headrace.ArraySource([np.full((48, 64, 3), 99, np.uint8)] * 4)
    found = [len(meta.objects) for _, meta in headrace.open_pipeline(config, sources=images)]
    assert found == [1, 0, 1, 0]


def test_several_sources_in_memory_are_numbered(mean_config: Config, photos: Path) -> None:
    black = headrace.ArraySource([np.zeros((48, 64, 3), np.uint8)] * 2, name="black")
    pipeline = headrace.open_pipeline(mean_config(), sources=[photos, black])
    frames = [(frame.source_id, frame.source.rpartition("/")[2]) for frame, _ in pipeline]
    assert sorted(set(frames))[-1] == (1, "black")
    assert [s.frames for s in pipeline.report.sources] == [3, 2]


def test_a_pipeline_file_runs_and_is_changed_by_what_is_given(
    mean_config: Config, photos: Path, tmp_path: Path
) -> None:
    config = mean_config()
    file = tmp_path / "pipeline.yml"
    file.write_text(
        f"sources: [gone.mp4]\nmodels: [{config.name}]\ntracker: iou\nsinks: ['o.jsonl']\n"
    )
    counts: list[int] = []
    pipeline = headrace.open_pipeline(
        file, lambda batch: counts.append(len(batch)), sources=photos, limit=2
    )
    report = pipeline.run()
    assert (report.frames, sum(counts)) == (2, 2)
    lines = [json.loads(line) for line in (tmp_path / "o.jsonl").read_text().splitlines()]
    assert len(lines) == 2
    with pytest.raises(HeadraceError, match="names its models itself"):
        headrace.open_pipeline(file, config, sources=photos)


def test_a_spec_made_by_a_program_runs(mean_config: Config, photos: Path) -> None:
    spec = headrace.PipelineSpec(
        sources=(headrace.SourceSpec(uri=str(photos)),),
        models=(headrace.ModelSpec(config=mean_config()),),
    )
    assert headrace.open_pipeline(spec).run().objects == {"thing": 3}


def test_warnings_are_shown_once_at_the_callers_line(mean_config: Config, photos: Path) -> None:
    config = mean_config(network_mode=1)
    with pytest.warns(headrace.HeadraceWarning, match="network-mode") as caught:
        pipeline = headrace.open_pipeline(config, sources=photos)
    assert {w.filename for w in caught} == {__file__}
    assert len({str(w.message) for w in caught}) == len(caught)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pipeline.run()  # what was told is not told again
    told = [n for n in pipeline.report.notices if "network-mode" in n.sentence]
    assert len(told) == len(set(told)) > 0
    assert set(pipeline.notices) == set(pipeline.report.notices)


def test_warnings_are_shown_before_the_error_that_they_explain(
    mean_config: Config, photos: Path
) -> None:
    config = mean_config(parse_bbox_func_name=None, parse_bbox_function_name="parse")
    told = "parse-bbox-function-name is not a key"
    with (
        pytest.warns(headrace.HeadraceWarning, match=told) as caught,
        pytest.raises(ParserError, match="no parse-bbox-func-name") as raised,
    ):
        headrace.open_pipeline(config, sources=photos)
    assert [w.filename for w in caught] == [__file__]
    assert [n.level for n in raised.value.notices if told in n.sentence] == ["warning"]
    with pytest.raises(ParserError) as raised:
        headrace.Inferencer.from_config(config)
    notices = raised.value.notices
    assert [n.level for n in notices if told in n.sentence] == ["warning"]
    assert len(notices) == len(set(notices))
    config.write_text(config.read_text() + "batch-size=x\n")
    with (
        pytest.warns(headrace.HeadraceWarning, match=told) as caught,
        pytest.raises(ConfigError, match="batch-size"),
    ):
        headrace.open_pipeline(config, sources=photos)
    assert [w.filename for w in caught] == [__file__]


def test_a_failed_source_is_a_warning_at_the_end(mean_config: Config, photos: Path) -> None:
    def broken() -> Any:
        yield np.zeros((48, 64, 3), np.uint8)
        yield "no image"

    sources = [photos, headrace.ArraySource(broken(), name="broken")]
    pipeline = headrace.open_pipeline(mean_config(), sources=sources)
    with pytest.warns(headrace.HeadraceWarning, match=r"broken: failed after 1 frame"):
        report = pipeline.run()
    assert [s.state for s in report.sources] == ["ended", "failed"]
    again = [photos, headrace.ArraySource(broken(), name="broken")]
    pipeline = headrace.open_pipeline(mean_config(), sources=again)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(headrace.HeadraceWarning, match="broken"):
            list(pipeline)
    assert pipeline.state == "done"


def test_strict_refuses_before_an_output_is_created(
    mean_config: Config, photos: Path, tmp_path: Path
) -> None:
    out = tmp_path / "o.jsonl"
    with pytest.raises(StrictError, match="network-mode"):
        headrace.open_pipeline(
            mean_config(network_mode=1), sources=photos, outputs=out, strict=True
        )
    assert not out.exists()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(headrace.HeadraceWarning, match="network-mode"):
            headrace.open_pipeline(mean_config(network_mode=1), sources=photos, outputs=out)
    assert not out.exists()


def test_a_parser_that_always_fails_is_an_error(mean_config: Config) -> None:
    config = mean_config(parse_bbox_func_name="fails_on_black")
    black = headrace.ArraySource([np.zeros((48, 64, 3), np.uint8)] * 2)
    pipeline = headrace.open_pipeline(config, sources=black)
    with (
        pytest.warns(headrace.HeadraceWarning, match="nothing to see"),
        pytest.raises(ParserError, match="none of the 2 outputs"),
    ):
        pipeline.run()


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"sources": ()}, HeadraceError, "there is no source"),
        ({"sources": "gone.mp4"}, MediaError, "gone.mp4"),
        ({"sources": [np.zeros((4, 4, 3), np.uint8)]}, HeadraceError, "ArraySource"),
        ({"sources": np.zeros((4, 4, 3), np.uint8)}, HeadraceError, "ArraySource"),
        ({"outputs": "o.xyz"}, MediaError, "jsonl"),
        ({"tracker": "oiu"}, ConfigError, "iou"),
    ],
)
def test_what_is_wrong_is_said(
    mean_config: Config, photos: Path, changes: dict[str, Any], error: type, words: str
) -> None:
    with pytest.raises(error, match=words):
        headrace.open_pipeline(mean_config(), **{"sources": photos, **changes})


def test_a_config_that_is_gone_and_a_stage_that_is_none(photos: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such config"):
        headrace.open_pipeline(tmp_path / "gone.txt", sources=photos)
    with pytest.raises(HeadraceError, match="cannot stand"):
        headrace.open_pipeline(42, sources=photos)  # type: ignore[arg-type]


def test_images_one_by_one_are_probably_a_mistake(mean_config: Config, photos: Path) -> None:
    with pytest.warns(headrace.HeadraceWarning, match="each of 3 images"):
        headrace.open_pipeline(mean_config(), sources=sorted(photos.iterdir())).close()


def test_lines_tell_sources_of_one_file_apart_and_name_frames_that_interval_skipped(
    mean_config: Config, photos: Path, tmp_path: Path
) -> None:
    outputs = [tmp_path / "a.jsonl", tmp_path / "a.json"]
    with headrace.open_pipeline(
        mean_config(), sources=[photos, photos], outputs=outputs, interval=1,
        parser=lambda *_: headrace.Detections.empty(),
    ) as pipeline:  # fmt: skip
        pipeline.run()
    lines = [json.loads(line) for line in outputs[0].read_text().splitlines()]
    images = json.loads(outputs[1].read_text())["images"]
    for records in (lines, images):
        assert [r["source_id"] for r in records] == [0, 1] * (len(records) // 2)
        assert [r.get("inferred", True) for r in records] == [r["frame"] % 2 == 0 for r in records]
    assert len(lines) > 2
    assert not any(line["objects"] for line in lines)


def test_keys_of_the_only_model(mean_config: Config, photos: Path, tmp_path: Path) -> None:
    (tmp_path / "own.txt").write_text("parcel\n")

    def found(*stages: Any, **keys: Any) -> list[list[str]]:
        pairs = headrace.open_pipeline(*stages, sources=photos, **keys)
        return [[obj.label for obj in meta.objects] for _, meta in pairs]

    path = mean_config()
    spec = headrace.PipelineSpec(
        sources=(headrace.SourceSpec(uri=str(photos)),), models=(headrace.ModelSpec(config=path),)
    )
    for first in (path, headrace.ModelConfig.load(path), spec):
        assert found(first, labels=tmp_path / "own.txt", interval=1) == [["parcel"], [], ["parcel"]]
        assert found(first, conf=0.5) == [[], ["thing"], ["thing"]]
        assert found(first, parser=lambda a, b, c: headrace.Detections.empty()) == [[], [], []]


def test_keys_of_several_models_are_not_clear(mean_config: Config, photos: Path) -> None:
    config = mean_config()
    for keys in ({"conf": 0.4}, {"batch_size": 2}, {"parser": print}):
        with pytest.raises(ConfigError, match=r"(?s)there are 2 models.*path"):
            headrace.open_pipeline(config, secondary(config), sources=photos, **keys)
    with (
        headrace.Inferencer.from_config(config) as model,
        pytest.raises(ConfigError, match="no config to set it in"),
    ):
        headrace.open_pipeline(model, sources=photos, conf=0.4)
    second = headrace.ModelConfig.load(secondary(config)).with_overrides(conf=0.5)
    pipeline = headrace.open_pipeline(config, second, sources=photos)
    ids = [[obj.component_id for obj in meta.objects] for _, meta in pipeline]
    assert ids == [[1], [1, 2], [1, 2]]


def test_a_misspelt_argument_is_refused_with_the_nearest(mean_config: Config) -> None:
    with pytest.raises(ConfigError, match=r"source is neither.*\n.*did you mean sources"):
        headrace.open_pipeline(mean_config(), source="v.mp4")


@pytest.mark.skipif(Path("/dev/video0").exists(), reason="there is a camera")
def test_a_number_is_a_camera(mean_config: Config, photos: Path) -> None:
    with pytest.raises(MediaError, match="camera:0: there is no camera 0"):
        headrace.open_pipeline(mean_config(), sources=0)
    with pytest.raises(MediaError, match="no camera 7"):
        headrace.open_source(7)
    with pytest.warns(headrace.HeadraceWarning, match="no camera 7"):
        mixed = headrace.open_pipeline(mean_config(), sources=[photos, 7])
    assert [s.name for s in mixed.sources] == [str(photos), "camera:7"]
    mixed.close()


def test_async_for_is_the_same_loop(mean_config: Config, photos: Path, tmp_path: Path) -> None:
    async def main() -> list[tuple[int, str]]:
        pipeline = headrace.open_pipeline(
            mean_config(), sources=photos, outputs=tmp_path / "o.jsonl"
        )
        async with pipeline:
            return [(f.frame, o.label) async for f, meta in pipeline for o in meta.objects]

    assert asyncio.run(main()) == [(i, "thing") for i in range(3)]
    assert len((tmp_path / "o.jsonl").read_text().splitlines()) == 3


@pytest.mark.parametrize("wrong", ["limit", "probe"])
def test_what_is_refused_leaves_files_that_are_there_alone(
    mean_config: Config, photos: Path, tmp_path: Path, wrong: str
) -> None:
    async def probe(_batch: Any) -> None: ...

    out = tmp_path / "o.jsonl"
    out.write_text("mine")
    stages = [mean_config(), probe] if wrong == "probe" else [mean_config()]
    with pytest.raises(HeadraceError):
        headrace.open_pipeline(
            *stages, sources=photos, outputs=out, limit=0 if wrong == "limit" else 3
        )
    assert out.read_text() == "mine"


@pytest.mark.parametrize("name", ["video.mp4", "a/image.JPG", "rtsp://host/live"])
def test_a_source_among_the_stages_is_named(mean_config: Config, name: str) -> None:
    with pytest.raises(HeadraceError, match="is a source, not a config") as caught:
        headrace.open_pipeline(mean_config(), name)
    assert f"sources={name!r}" in str(caught.value)


def test_a_bare_model_with_a_parser_of_the_program(tmp_path: Path) -> None:
    def mine(layers: object, network: object, params: object) -> headrace.Detections:
        return headrace.Detections(boxes=[[8, 8, 40, 40]], scores=[0.9], class_ids=[79])

    rows = pixel_rows(cells(128), 85, size=1)
    path = rows_of(tmp_path / "m.onnx", rows, size=(128, 128), spread=1.0, focus=True)
    image = np.zeros((64, 64, 3), np.uint8)
    source = headrace.ArraySource([image])
    with headrace.open_pipeline(path, sources=source, conf=0.8, parser=mine) as pipeline:
        assert pipeline.models[0].config.num_detected_classes == 80
        assert pipeline.run().objects == {"toothbrush": 1}


def test_outputs_of_a_file_that_others_replace_are_named(tmp_path: Path) -> None:
    path = tmp_path / "p.yml"
    path.write_text("sources: [a.mp4]\nmodels: []\nsinks: [a.jsonl, 'mqtt://host/t']\n")
    base = load_pipeline(path)
    (notice,) = pipeline_spec(base, outputs=["b.jsonl"]).notices
    assert (notice.code, notice.level) == ("outputs-replaced", "warning")  # a broker among them
    assert notice.data["outputs"] == f"{tmp_path}/a.jsonl, mqtt://host/t"
    assert pipeline_spec(base).notices == ()
    again = [f"jsonl:{tmp_path}/a.jsonl?size=1m", "mqtt://host/t?every=30"]
    assert pipeline_spec(base, outputs=again).notices == ()
    (notice,) = pipeline_spec(base, outputs=again[1:]).notices
    assert (notice.data["outputs"], notice.level) == (f"{tmp_path}/a.jsonl", "info")
    path.write_text("sources: [a.mp4]\nmodels: []\nsinks: [a.jsonl]\n")
    (notice,) = pipeline_spec(load_pipeline(path), outputs=["b.jsonl"]).notices
    assert notice.level == "info"
