"""Calls of every public face, for the tests that compare the process before and after.

`CALLS` has a row for each: the function, and the public names that it calls.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from PIL import Image

import headrace
from headrace import Detections, Frame, FrameMeta, Objects
from headrace.config import ModelConfig, is_pipeline_file
from headrace.custom import (
    CheckedClassifier,
    CheckedSegmentation,
    checked,
    include_dir,
    open_library,
)
from headrace.diagnose.explain import explain_frame, place_of
from headrace.engine import BuildOptions, Plan, build
from headrace.engine.precision.cache import CalibrationTable
from headrace.engine.precision.rules import PrecisionRules
from headrace.infer import ModelUpdater, trace_frame
from headrace.live import Address, LiveServer, LiveView, live_address
from headrace.media import as_frame, check_sinks, expand_sink_path
from headrace.media.draw import contact_sheet
from headrace.meta import (
    Caption,
    ClassifierMeta,
    ClassifierParams,
    FrameAnalytics,
    LabelInfo,
    ObjectAnalytics,
    Stroke,
    mask_border_colors,
)
from headrace.network import (
    network_from_caffe,
    network_from_darknet,
    network_from_onnx,
    network_from_uff,
)
from headrace.pipeline import Pipeline
from headrace.pipeline.analytics import Analytics, SourceRules, load_rules
from headrace.pipeline.track import TrackIds, tracker_settings
from headrace.plugins import PluginRegistry, Tracer, address_of, array_at
from headrace.plugins.standard import register_standard
from tests.media.conftest import write_clip

SCENE = Path(__file__).parents[1] / "examples" / "conveyor"
CONFIG = SCENE / "config_infer_primary.txt"


class Host:
    """A folder with inputs, and a config whose engine is built there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config = ModelConfig.load(CONFIG)
        self.video = write_clip(folder / "video.mp4", 6, size=(640, 384))
        for number in range(3):
            image = Image.fromarray(np.full((48, 64, 3), 40 * number, np.uint8))
            image.save(folder / f"{number}.jpg")
        (folder / "broken.jpg").write_bytes((folder / "0.jpg").read_bytes()[:300])

    def out(self, name: str) -> str:
        return str(self.folder / name)


def _run(host: Host) -> None:
    outputs = [host.out(name) for name in ("a.jsonl", "b.mp4", "c.parquet", "d.json")]
    with headrace.open_pipeline(CONFIG, sources=host.video, outputs=outputs) as pipeline:
        pipeline.run().to_dict()


def _images(host: Host) -> None:
    with warnings.catch_warnings(record=True):
        before = list(warnings.filters)
        sources = [host.out("[0-9].jpg"), str(host.folder / "1.jpg"), str(host.folder / "2.jpg")]
        with headrace.open_pipeline(CONFIG, sources=sources) as pipeline:
            assert len(list(pipeline)) == 5
        assert warnings.filters == before


def _given_up(host: Host) -> None:
    pipeline = headrace.open_pipeline(CONFIG, sources=[host.video, host.video])
    next(iter(pipeline))
    pipeline.close()


def _failed(host: Host) -> None:
    with pytest.raises(headrace.HeadraceError):
        headrace.open_pipeline(CONFIG, sources=host.out("none.mp4"))
    with pytest.raises(headrace.HeadraceError):
        headrace.ModelConfig.load(host.out("none.txt"))
    with (
        pytest.raises(headrace.HeadraceError),
        headrace.open_pipeline(CONFIG, sources=host.out("broken.jpg")) as pipeline,
    ):
        pipeline.run()


def _inferencer(host: Host) -> None:
    with headrace.Inferencer.from_config(CONFIG) as model:
        model(np.zeros((384, 640, 3), np.uint8))


def _sources_and_sinks(host: Host) -> None:
    with (
        headrace.open_source(str(host.video)) as source,
        headrace.open_sink(host.out("e.mp4")) as sink,
    ):
        for frame in source:
            sink.write(frame, headrace.FrameMeta(source.name, 0, frame.frame, 0, 640, 384))


def _tables(host: Host) -> None:
    with headrace.open_pipeline(CONFIG, sources=host.video) as pipeline:
        headrace.table.to_pandas(pipeline)


def _examined(host: Host) -> None:
    explained = headrace.explain(CONFIG, host.video)
    explained.summary()
    explained.to_dict()
    explained.to_json()
    explained.to_html()
    explained.write_html(host.out("explained.html"))


def _compared(host: Host) -> None:
    compared = headrace.compare(CONFIG, CONFIG, host.video, frames=2)
    compared.to_dict()
    compared.to_html()
    compared.write_html(host.out("compared.html"))
    compared.state_of(compared.stages[0])


def _recorded(host: Host) -> None:
    headrace.record(CONFIG, host.video, host.out("r.safetensors"), limit=2)


def _seen(view: LiveView) -> None:
    view.listen(print)
    view.unlisten(print)
    view.newer({0: 0})
    view.image(0, 64)
    view.frame_of(0, 1)
    view.rates()
    view.counts()
    view.note_end("the end")
    view.forget(7)


def _served(host: Host) -> None:
    view = LiveView()
    pipeline = Pipeline([], (), [view], keep_open=True)
    server = LiveServer(pipeline, view, Address(port=0))
    running = Thread(target=pipeline.run)
    running.start()
    pipeline.add_source(host.video)
    pipeline.snapshot()
    _seen(view)
    pipeline.remove_source(0)
    pipeline.stop()
    running.join(20)
    server.close()


def _batch(host: Host) -> None:
    headrace.batch(CONFIG, inputs=host.out("1.jpg"), out=host.out("batch"), workers=1).to_dict()


def _guarded(host: Host) -> None:
    with headrace.Inferencer.from_config(CONFIG, guard="always") as model:
        model(np.zeros((384, 640, 3), np.uint8))


def _settings(host: Host) -> None:
    config = ModelConfig.load(CONFIG)
    assert not is_pipeline_file(CONFIG)
    spec = headrace.load_pipeline(SCENE / "pipeline.yml")
    spec.with_notice(headrace.Finding("media-refused", "error", "no")).dump()
    spec.effective()
    spec.models[0].load()
    headrace.SourceSpec.given(str(host.video))
    tracker_settings("iou")
    live_address("0")
    include_dir()
    check_sinks([host.out("x.jsonl")])
    expand_sink_path("x.jsonl", headrace.ArraySource([]))
    list(headrace.batches.expand_inputs([str(host.video)]))
    assert config.dump("ini")


def _engines(host: Host) -> None:
    network = network_from_onnx(SCENE / "detector.onnx")
    network.summary()
    plan = build(network, BuildOptions(max_batch=1))
    plan.save(host.folder / "own.engine")
    plan.describe()
    plan.whole_model()
    Plan.from_bytes((host.folder / "own.engine").read_bytes())
    with Plan.load(host.folder / "own.engine").open_session() as session:
        (spec,) = session.inputs
        session.run({spec.name: np.zeros((1, *spec.shape[1:]), np.float32)})
        session.submit({spec.name: np.zeros((1, *spec.shape[1:]), np.float32)}).result()


def _other_networks(host: Host) -> None:
    none = host.folder / "none"
    with suppress(headrace.HeadraceError):
        network_from_caffe(none, none)
    with suppress(headrace.HeadraceError):
        network_from_uff(none)
    with suppress(headrace.HeadraceError):
        network_from_darknet(none, none)


def _plugins(host: Host) -> None:
    register_standard(PluginRegistry())
    values = np.ones(4, np.float32)
    array_at(address_of(values), (4,), np.float32)
    with Tracer() as tracer:
        tracer.table()
        tracer.sequence()
        tracer.counts()


def _libraries(host: Host) -> None:
    open_library(SCENE / "conveyor_parser.py").close()
    layers = {"y": headrace.Layer("y", np.zeros((2, 2), np.float32))}
    size = headrace.NetworkInfo(4, 4, 3)
    boxes = checked(lambda *_: Detections.empty(), "here")
    boxes(layers, size, headrace.DetectionParams(1, np.zeros(1, np.float32)))
    labels = CheckedClassifier(lambda *_: headrace.Classification(), "here")
    labels(layers, size, ClassifierParams(0.5))
    maps = CheckedSegmentation(lambda *_: headrace.Segmentation(np.zeros((4, 4), np.int32)), "here")
    maps(layers, size, headrace.meta.SegmentationParams(1))


def _values(host: Host) -> None:
    frame = as_frame(np.zeros((48, 64, 3), np.uint8))
    frame.to_rgb()
    Frame.from_array(np.zeros((8, 8, 3), np.uint8)).to_bgr()
    headrace.Batch.of([frame, frame]).drop([0])
    list(headrace.ArraySource([np.zeros((8, 8, 3), np.uint8)]))
    objects = Objects()
    objects.append(
        Detections.from_xyxy([[0, 0, 4, 4]], [0.9], [0], space=headrace.Space.FRAME),
        1,
        labels=["a"],
    )
    meta = FrameMeta("a", 0, 0, 0, 64, 48, objects=objects)
    meta.to_detections().to_supervision()
    meta.to_supervision()
    meta.to_supervision_keypoints()
    meta.note_failure(2)
    meta.pixel_mask(objects.add(1, 1, 4, 4))
    label = ClassifierMeta(2, (LabelInfo(0, 0, 0.5, "b"),), "b ")
    objects.add_classifier(0, label)
    objects.add_classifiers([1], [label])
    objects.keep(lambda obj: True)
    headrace.Painter().draw(frame, meta)
    headrace.show(frame, meta)
    tiler = headrace.Tiler(1, 1)
    tiler.compose([(frame, meta)])
    tiler.end(0, "a")
    contact_sheet([frame], host.folder / "sheet.png")
    headrace.Classification().add(0, 0, 0.5)
    ClassifierParams(0.5, [["a"]]).label(0, 0)
    Caption("a", 0, 0, (1, 1, 1, 1)).moved(1, 1, 1, 1)
    Stroke(((0, 0), (1, 1)), (1, 1, 1, 1)).moved(1, 1, 1, 1)
    FrameAnalytics().to_dict()
    ObjectAnalytics().to_dict()
    mask_border_colors([np.ones((4, 4), np.float32)])
    place_of((1, 1), None)
    layers = {"y": headrace.Layer("y", np.zeros(4, np.float32))}
    headrace.TensorOutput(1, layers, headrace.NetworkInfo(4, 4, 3)).address("y")
    headrace.Finding("media-refused", "error", "no").at("a.png").to_json()


def _tracked(host: Host) -> None:
    TrackIds().take(2)
    frame = as_frame(np.zeros((384, 640, 3), np.uint8))
    objects = Objects()
    objects.append(Detections.from_xyxy([[0, 0, 9, 9]], [0.9], [0], space=headrace.Space.FRAME), 1)
    meta = FrameMeta("a", 0, 0, 0, 640, 384, objects=objects)
    headrace.open_tracker("iou")
    rules = load_rules(SCENE / "counting.txt")
    rules.of(0, 640, 384)
    SourceRules().scaled(1, 1)
    analytics = Analytics(rules)
    analytics.update(frame, meta)
    analytics.set_regions(0, ())
    analytics.end_of_stream(0)
    analytics.close()
    Analytics.from_file(SCENE / "counting.txt").close()


def _traced(host: Host) -> None:
    with headrace.Inferencer.from_config(CONFIG) as model:
        with headrace.open_source(str(host.video)) as source:
            trace_frame(model, next(iter(source)))
        with headrace.open_source(str(host.video)) as source:
            explain_frame([model], source)


def _updated(host: Host) -> None:
    with headrace.Inferencer.from_config(CONFIG) as model:
        updater = ModelUpdater(model)
        updater.update(config=CONFIG)
        updater.wait(20)
        model.update_model(config=CONFIG).wait(20)
        model.warn("media-refused", "no")
        model.reopened().close()


def _replayed(host: Host) -> None:
    headrace.record(CONFIG, host.video, host.out("s.safetensors"), limit=2)
    recording = headrace.load_recording(host.out("s.safetensors"))
    (item, *_) = recording.of(1)
    (again, *_) = headrace.replay_recording(recording, [ModelConfig.load(CONFIG)])
    headrace.assert_same_objects(again.result, item)


def _evaluated(host: Host) -> None:
    dataset = headrace.load_dataset(SCENE / "truth.json", images=SCENE / "conveyor.mp4")
    report = headrace.evaluate(CONFIG, dataset.limited(2))
    report.write_html(host.out("report.html"))
    report.to_dict()
    report.below({"mAP50": 0.5})
    report.results[0].scores.to_dict()


def _repaired(host: Host) -> None:
    repaired = headrace.repair(CONFIG, host.video, frames=2, seconds=3)
    repaired.to_dict()
    repaired.to_json()
    repaired.write(host.out("repaired.txt")).unlink()


def quantised(host: Host) -> None:
    """The tools of ONNX Runtime add a folder to the import path."""
    network = network_from_onnx(SCENE / "detector.onnx")
    rules = PrecisionRules(CalibrationTable.of({network.inputs[0].name: 1 / 127}))
    build(network, BuildOptions(precision="int8", exact=True, rules=rules))


CALLS: Mapping[Callable[[Host], None], str] = {
    _run: "open_pipeline Pipeline RunReport",
    _images: "open_pipeline",
    _given_up: "open_pipeline",
    _failed: "open_pipeline ModelConfig",
    _inferencer: "Inferencer",
    _sources_and_sinks: "open_source open_sink",
    _tables: "open_pipeline",
    _settings: (
        "ModelConfig PipelineSpec ModelSpec SourceSpec load_pipeline config.is_pipeline_file "
        "pipeline.track.tracker_settings live.live_address custom.include_dir media.check_sinks "
        "media.expand_sink_path batches.expand_inputs"
    ),
    _engines: "engine.build engine.Plan engine.Session network.Network network.network_from_onnx",
    quantised: "engine.build network.network_from_onnx",
    _other_networks: (
        "network.network_from_caffe network.network_from_uff network.network_from_darknet"
    ),
    _plugins: (
        "plugins.Tracer plugins.address_of plugins.array_at plugins.standard.register_standard"
    ),
    _libraries: (
        "custom.open_library custom.checked custom.CheckedParser custom.CheckedClassifier "
        "custom.CheckedSegmentation"
    ),
    _values: (
        "ArraySource Batch Classification Detections Finding Frame FrameMeta Objects Painter "
        "TensorOutput Tiler show media.as_frame media.draw.contact_sheet meta.Caption "
        "meta.ClassifierParams meta.FrameAnalytics meta.ObjectAnalytics meta.Stroke "
        "meta.mask_border_colors diagnose.explain.place_of"
    ),
    _tracked: (
        "open_tracker pipeline.track.TrackIds pipeline.analytics.Analytics "
        "pipeline.analytics.AnalyticsRules pipeline.analytics.SourceRules "
        "pipeline.analytics.load_rules"
    ),
    _examined: "explain diagnose.explain.Explanation",
    _traced: "infer.trace_frame infer.item_trace diagnose.explain.explain_frame",
    _updated: "ModelUpdater",
    _compared: "compare diagnose.compare.Comparison",
    _recorded: "record",
    _replayed: "record Recording load_recording replay_recording assert_same_objects",
    _evaluated: (
        "evaluate load_dataset EvaluationReport diagnose.evaluate.Dataset "
        "diagnose.evaluate.ConfigScores diagnose.evaluate.DetectionScores"
    ),
    _repaired: "repair diagnose.repair.Repair",
    _served: "live.LiveServer live.LiveView",
    _batch: "batch BatchReport",
    _guarded: "Inferencer",
}

CLOSED: Mapping[str, str] = {
    "custom.CheckedParser.warn_of_masks": "its parsers call it",
    "plugins.Tracer.add": "plugins call it",
    "plugins.Tracer.begin": "plugins call it",
    "custom.IModelParser": "users write one; see tests/examples",
    "diagnose.evaluate.ClassificationScores": "a value, as DetectionScores",
    "diagnose.evaluate.SegmentationScores": "a value, as DetectionScores",
    "pipeline.ModelReport": "a value of RunReport",
}
"""Public names without a row -> the reason."""
