"""One mistake on every road: the findings of each, told apart by code and by the keys to set."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import av
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import headrace
from headrace.batches.batch_run import BatchOptions
from headrace.batches.running import batch_run
from headrace.config.overrides import GivenKey
from headrace.errors import HeadraceError
from headrace.infer.run_options import RunOptions
from headrace.live import Address
from tests.engine.tuning.test_half_check import net
from tests.live.test_server import Client
from tests.mistakes import scene
from tests.mistakes.cases import Keys, Setup, config_text
from tests.mistakes.setups import LABELS, UNIT, YOLOV8, YOLOX
from tests.pipeline.test_pipeline_dynamic import wait_until

WHOLE = """import numpy as np
from headrace import Detections

def parse_whole(layers, network, params):
    box = np.array([[1, 17, 158, 94]], np.float32)
    return Detections(box, np.array([0.9], np.float32), np.array([0]))
"""
"""The parser of the model before a secondary one: its only object is nearly the whole image."""

_ASIDE = frozenset((
    "engine-built", "engine-loaded", "boxes-at-edge", "parser-built-in", "recognised-model",
    "recognised-images", "recognised-from", "frames-alone", "sources-many", "first-source",
    "videos-whole", "layers-folded", "labels-count", "decoded-on-cpu",
))  # fmt: skip
"""Notices that belong to a road, or that every run has."""


@dataclass(frozen=True)
class Told:
    """One finding: the keys that are certain or confirmed, and those that were only named."""

    code: str
    level: str
    confirmed: tuple[tuple[str, str], ...] = ()
    named: frozenset[tuple[tuple[str, str], ...]] = frozenset()


def _pairs(change: Any) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((key, str(value)) for key, value in (change or {}).items()))


def told(findings: Iterable[Any]) -> dict[str, Told]:
    """Findings by code, of those that tell of a mistake."""
    return {
        n.code: Told(
            n.code, n.level, _pairs(n.data.get("set")),
            frozenset(_pairs(row["set"]) for row in n.data.get("advice", ())),
        )
        for n in findings
        if n.code not in _ASIDE
    }  # fmt: skip


def _of_run(run: Callable[[], Iterable[Any]]) -> dict[str, Told]:
    try:
        return told(run())
    except HeadraceError as error:
        return told([*error.notices, error.finding])


# The mistakes: changed keys of a right set-up, and what lies in the place of its model.


@dataclass(frozen=True)
class Mistake:
    """A set-up whose model, parser or library is wrong.

    Attributes:
        keys: of its config; none for a bare model.
        model: name of the file, and of the one of the store that lies there.
        write: makes the model instead.
    """

    keys: Keys | None
    model: tuple[str, str]
    write: Callable[[Path, Path], None] | None = None


def _of(setup: Setup, stored: str = "", **keys: Any) -> Mistake:
    changed = {key.replace("_", "-"): value for key, value in keys.items()}
    name = setup.models[0]
    return Mistake(setup.configs["config.txt"] | changed, (name, stored or name))


def _with_input(name: str, kind: int) -> Callable[[Path, Path], None]:
    def write(store: Path, path: Path) -> None:
        model = onnx.load(store / "yolov8.onnx")
        graph, out = model.graph, model.graph.output[0].name
        graph.input.append(helper.make_tensor_value_info(name, kind, [1, 2]))
        for node in graph.node:
            node.output[:] = ["inner" if o == out else o for o in node.output]
        graph.initializer.append(numpy_helper.from_array(np.float32(0), "zero"))
        graph.node.extend([
            helper.make_node("Cast", [name], ["values"], to=TensorProto.FLOAT),
            helper.make_node("ReduceSum", ["values"], ["sum"], keepdims=0),
            helper.make_node("Mul", ["sum", "zero"], ["nothing"]),
            helper.make_node("Add", ["inner", "nothing"], [out]),
        ])  # fmt: skip
        onnx.save(model, path)

    return write


def _overflowing(store: Path, path: Path) -> None:
    onnx.save(net(1e4, 1e-4), path)


_NET = {"onnx-file": "net.onnx", "network-mode": 2, "network-type": 100, "net-scale-factor": UNIT,
        "gie-unique-id": 1, "output-tensor-meta": 1}  # fmt: skip
_TWO = YOLOV8.configs["config.txt"] | {"onnx-file": "two.onnx"}
_OF_THE_PARSER = "parse-bbox-func-name"
MISTAKES = {
    "no parser": _of(YOLOV8, parse_bbox_func_name=None),
    "function misspelt": _of(YOLOV8, parse_bbox_func_name="HeadraceParseYolov8"),
    "library lost": _of(YOLOV8, custom_lib_path="lost.so", parse_bbox_func_name="ParseLost"),
    "class count": _of(YOLOV8, num_detected_classes=80),
    "wrong parser": _of(YOLOX, parse_bbox_func_name="HeadraceParseYoloV5"),
    "boxes in 0..1": _of(YOLOV8, "unit.onnx"),
    "boxes are corners": _of(YOLOV8, "corners.onnx"),
    "scores without sigmoid": _of(YOLOV8, "logits.onnx"),
    "range of images": _of(YOLOV8, net_scale_factor=1),
    "detector as classifier": _of(YOLOV8, network_type=1),
    "FP16 overflows": Mistake(_NET, ("net.onnx", ""), _overflowing),
    "second input filled": Mistake(
        _TWO, ("two.onnx", ""), _with_input("orig_target_sizes", TensorProto.INT64)
    ),
    "second input open": Mistake(_TWO, ("two.onnx", ""), _with_input("gain", TensorProto.FLOAT)),
    "bare, head undecided": Mistake(None, ("bare.onnx", "yolox.onnx")),
    "bare, corners": Mistake(None, ("bare.onnx", "corners.onnx")),
}


def write(name: str, folder: Path, store: Path, *, secondary: bool) -> list[str]:
    """Write a mistake into the folder; returns its configs, in their order."""
    mistake = MISTAKES[name]
    file, stored = mistake.model
    if mistake.write is not None:
        mistake.write(store, folder / file)
    else:
        (folder / file).write_bytes((store / stored).read_bytes())
    (folder / "labels.txt").write_text(LABELS)
    (folder / "images").symlink_to(store / "images")
    if mistake.keys is None:
        return [file]
    keys = dict(mistake.keys)
    if secondary:
        keys |= {"process-mode": 2, "gie-unique-id": 2, "operate-on-gie-id": 1}
        (folder / "whole.py").write_text(WHOLE)
        (folder / "first.onnx").write_bytes((store / "yolov8.onnx").read_bytes())
        first = {"onnx-file": "first.onnx", "custom-lib-path": "whole.py"}
        first |= {_OF_THE_PARSER: "parse_whole"}
        (folder / "first.txt").write_text(config_text(YOLOV8.configs["config.txt"] | first))
    (folder / "config.txt").write_text(config_text(keys))
    return ["first.txt", "config.txt"] if secondary else ["config.txt"]


# The roads; each is called in the folder.


def by_open_pipeline(configs: Sequence[str]) -> dict[str, Told]:
    return _of_run(lambda: _ran(headrace.open_pipeline(*configs, sources="images")))


def _ran(pipeline: Any) -> list[Any]:
    pipeline.run()
    return list(pipeline.notices)


def by_command(configs: Sequence[str]) -> dict[str, Told]:
    """`headrace run`: the findings of its report, or of its refusal, as JSON."""
    words = ["run", *configs, "images", "-o", "out.jsonl", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "headrace", *words], capture_output=True, text=True, check=False
    )
    document = json.loads(done.stdout)
    rows = document["notices"] + ([document["error"]] if "error" in document else [])
    return told(_Row(row) for row in rows)


class _Row:
    """A finding as JSON has it."""

    def __init__(self, row: dict[str, Any]) -> None:
        self.code, self.level, self.data = row["code"], row["level"], row["data"] or {}


def by_pipeline_file(configs: Sequence[str]) -> dict[str, Told]:
    models = "".join(f"  - config: {config}\n" for config in configs)
    Path("pipeline.yml").write_text(f"sources: [images]\nmodels:\n{models}")
    return _of_run(lambda: _ran(headrace.open_pipeline("pipeline.yml")))


def by_application(configs: Sequence[str]) -> dict[str, Told]:
    text = f"[source0]\nenable=1\ntype=2\nuri=file://{_video()}\n[streammux]\nbatch-size=1\n"
    text += f"width={scene.WIDTH}\nheight={scene.HEIGHT}\n[primary-gie]\nenable=1\n"
    text += f"gie-unique-id=1\nconfig-file={configs[0]}\n"
    for config in configs[1:]:
        text += "[secondary-gie0]\nenable=1\ngie-unique-id=2\noperate-on-gie-id=1\n"
        text += f"config-file={config}\n"
    Path("app.txt").write_text(text)
    return _of_run(lambda: _ran(headrace.open_pipeline("app.txt")))


def by_class(configs: Sequence[str]) -> dict[str, Told]:
    """`Pipeline` around models that the program opens itself."""

    def run() -> list[Any]:
        models = [headrace.Inferencer.from_config(config) for config in configs]
        pipeline = headrace.Pipeline(headrace.open_source("images"), models)
        pipeline.run()
        return list(pipeline.report.notices)

    return _of_run(run)


def by_calls(configs: Sequence[str]) -> dict[str, Told]:
    def run() -> list[Any]:
        models = [headrace.Inferencer.from_config(config) for config in configs]
        for path in sorted(Path("images").iterdir()):
            meta = None
            for model in models:
                meta = model(str(path), meta)
        for model in models:
            model.conclude()
        return [notice for model in models for notice in model.notices]

    return _of_run(run)


def by_batch(configs: Sequence[str]) -> dict[str, Told]:
    def run() -> Sequence[Any]:
        batch = batch_run(
            configs, ["images"], Path("results"), tracker=None, settings=list[GivenKey](),
            kinds=("parquet", "frames"), run=RunOptions(device="cpu"),
            options=BatchOptions(workers=1),
        )  # fmt: skip
        return batch.run().notices

    return _of_run(run)


def by_service(configs: Sequence[str]) -> dict[str, Told]:
    """`headrace serve`, whose only source comes over HTTP; its log tells codes alone."""
    process = subprocess.Popen(
        [sys.executable, "-m", "headrace", "serve", *configs, "--listen", "127.0.0.1:0",
         "--log-format", "json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line)
        if address := re.search(r"http://127\.0\.0\.1:([0-9]+)/", line):
            _feed(int(address[1]))
            process.send_signal(signal.SIGTERM)
    lines += process.stderr.readlines()
    process.communicate(timeout=60)
    rows = [json.loads(line) for line in lines if line.startswith("{")]
    return told(_Row({"data": {}, "level": "", **row}) for row in rows if row.get("code"))


def _feed(port: int) -> None:
    """Add the images to the service, and wait until they are through."""
    client = Client(Address(port=port))
    assert client.ask("/api/sources", {"uri": str(Path("images").resolve())})[0] == 201
    wait_until(lambda: client.json("/api/state")["frames"] >= scene.COUNT, 60)
    client.close()


def by_element(configs: Sequence[str], play: Any, monkeypatch: Any) -> dict[str, Told]:
    """`nvinfer`: what stands on the bus, with the findings that its texts are of."""
    from headrace.gstreamer.elements.element import NvElement

    known: dict[str, Any] = {}
    notices, error = NvElement.post_notices, NvElement.post_error

    def post_notices(self: Any, findings: Any) -> None:
        findings = list(findings)
        known.update({str(finding): finding for finding in findings})
        notices(self, findings)

    def post_error(self: Any, failure: Any) -> None:
        known[str(failure)] = failure.finding
        error(self, failure)

    monkeypatch.setattr(NvElement, "post_notices", post_notices)
    monkeypatch.setattr(NvElement, "post_error", post_error)
    models = " ! ".join(f"nvinfer config-file-path={config}" for config in configs)
    ran = play(
        f"filesrc location={_video()} ! qtdemux ! h264parse ! nvv4l2decoder ! m.sink_0 "
        f"nvstreammux name=m batch-size=1 width={scene.WIDTH} height={scene.HEIGHT} ! {models} "
        "! fakesink"
    )
    texts = [*ran.warnings, *ran.infos, *(text.partition("\n")[2] for text in ran.errors)]
    return told(known[text] for text in texts if text in known)


def _video() -> Path:
    """The images as a video, nearly without loss."""
    path = Path("video.mp4").resolve()
    if not path.exists():
        with av.open(str(path), "w") as container:
            stream = container.add_stream("libx264", rate=10, options={"crf": "4"})
            stream.width, stream.height, stream.pix_fmt = scene.WIDTH, scene.HEIGHT, "yuv420p"
            for number in range(scene.COUNT):
                image = av.VideoFrame.from_ndarray(scene.image(number), format="rgb24")
                container.mux(stream.encode(image))
            container.mux(stream.encode())
    return path


ROADS: dict[str, Callable[..., dict[str, Told]]] = {
    "command line": by_command,
    "pipeline file": by_pipeline_file,
    "application config": by_application,
    "Pipeline": by_class,
    "calls": by_calls,
    "batch": by_batch,
    "nvinfer": by_element,
    "service": by_service,
}
BLIND = ("Pipeline", "calls", "nvinfer", "service")
"""Roads that have no frame yet when a model is refused: they name what others try."""
