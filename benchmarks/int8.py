"""INT8 by `headrace calibrate` beside ONNX Runtime's quantiser: boxes kept, FP32 layers, speed.

Both learn from the same frames of a video and are judged on the video's other frames, by the boxes
that FP32 finds there.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from rich.console import Console
from rich.table import Table

from benchmarks.common import ROOT, data_dir
from headrace.config import ModelConfig
from headrace.config.enums import NetworkMode
from headrace.diagnose.calibrate.scales import calibrate, select_frames, selected_frames
from headrace.diagnose.compare.int8_agreement import Judge
from headrace.diagnose.compare.int8_choice import choose_int8
from headrace.diagnose.evaluate.truth import scored
from headrace.engine.backends import installed_backends
from headrace.engine.builder import BuildOptions, build
from headrace.engine.machine import this_machine
from headrace.engine.precision.explicit import as_network
from headrace.engine.precision.prepare import prepare
from headrace.engine.precision.qdq import MIN_OPSET
from headrace.engine.session import Session
from headrace.infer.model import load_or_build
from headrace.infer.model.image_input import network_dims
from headrace.infer.model.source import model_source
from headrace.infer.preprocess import Preprocessor
from headrace.media import open_source
from headrace.media.frame import Frame
from headrace.network.network import Network

_ROUNDS = 15
_MOST_JUDGED = 240


@dataclass(frozen=True, slots=True)
class Case:
    """A detector, and a video to calibrate and judge it on."""

    name: str
    folder: Path
    video: Path
    frames: int


def report() -> None:
    """Print the table."""
    table = Table(title=f"int8, {this_machine()}", title_justify="left")
    for heading in ("model", "engine", "runtime", "FP32 layers", "of FP32's boxes", "more",
                    "agreement", "ms", "FP32 / it"):  # fmt: skip
        table.add_column(heading)
    runtimes = [r for r in installed_backends() if r in ("onnxruntime", "openvino")]
    with tempfile.TemporaryDirectory() as folder:
        for case in _cases(Path(folder)):
            _add_rows(table, case, runtimes)
    Console(width=130).print(table)


def _cases(folder: Path) -> Iterator[Case]:
    demo = folder / "demo"
    shutil.copytree(ROOT / "examples" / "conveyor", demo)
    yield Case("demo detector", demo, demo / "conveyor.mp4", 60)
    data = data_dir()
    if data is None:
        return
    yolox = folder / "yolox"
    shutil.copytree(ROOT / "examples" / "yolox", yolox)
    shutil.copy(data / "models" / "yolox_nano.onnx", yolox)
    yield Case("YOLOX-nano", yolox, data / "videos" / "car-detection.mp4", 150)


def _add_rows(table: Table, case: Case, runtimes: list[str]) -> None:
    cfg = ModelConfig.load(case.folder / "config_infer_primary.txt")
    cfg = cfg.with_overrides(batch_size=1, interval=0, network_mode=NetworkMode.FP32)
    source = model_source(cfg)
    assert source is not None
    network = source.network()
    held_out = _held_out(case)
    judge = replace(Judge.of(cfg), margins=(1.0,))
    reference = scored(cfg, _open(network, "onnxruntime"), held_out)
    made = _sessions(cfg, case, network, runtimes)
    times = _times({key: session for key, (session, _) in made.items()})
    for (engine, runtime), (session, kept) in made.items():
        found = judge.agreement(reference, scored(cfg, session, held_out), runtime)
        table.add_row(
            case.name, engine, runtime, kept, f"{found.equal} of {found.fp32}",
            f"{found.int8 - found.equal}", f"{100 * found.share:.1f} %",
            f"{times[engine, runtime]:.1f}",
            f"{times['FP32', runtime] / times[engine, runtime]:.2f}",
        )  # fmt: skip


def _sessions(
    cfg: ModelConfig, case: Case, network: Network, runtimes: list[str]
) -> dict[tuple[str, str], tuple[Session, str]]:
    """Engine and runtime -> its session and its FP32 layers."""
    made = {("FP32", runtime): (_open(network, runtime), "all") for runtime in runtimes}
    path = case.folder / "table.calib"
    table = calibrate(cfg, [str(case.video)], frames=case.frames, cache=path).table
    done = choose_int8(cfg, [str(case.video)], table, frames=case.frames)
    done.choice.save(path)
    kept = f"{len(done.choice.keep)} of {done.layers}"
    int8 = cfg.with_overrides(network_mode=NetworkMode.INT8, int8_calib_file=path)
    for runtime in runtimes:
        plan = load_or_build(int8, backend=runtime, precision="int8", rebuild=True, save=False)
        made["headrace calibrate", runtime] = plan.open_session(), kept
    quantised = _quantised(cfg, network, case)
    for runtime in runtimes:
        made["quantize_static", runtime] = _open(quantised, runtime), "0"
    return made


def _open(network: Network, runtime: str) -> Session:
    return build(network, BuildOptions(runtime=runtime)).open_session()


def _held_out(case: Case) -> list[Frame]:
    """Frames that nothing was calibrated on."""
    [clip], _ = select_frames([str(case.video)], case.frames)
    seen = {int(i * clip.step) for i in range(clip.frames)}
    with open_source(str(case.video), live=False) as source:
        frames = [f for i, f in enumerate(source) if i not in seen]
    return frames[:: max(1, len(frames) // _MOST_JUDGED)]


class _Images:
    """Prepared images for ONNX Runtime's quantiser."""

    def __init__(self, name: str, images: Iterator[npt.NDArray[np.float32]]) -> None:
        self._name, self._images = name, images

    def get_next(self) -> Mapping[str, npt.NDArray[np.float32]] | None:
        image = next(self._images, None)
        return None if image is None else {self._name: image}


def _quantised(cfg: ModelConfig, network: Network, case: Case) -> Network:
    """The model as `quantize_static` makes it: U8S8, a scale per output channel, its own ranges."""
    from onnxruntime.quantization import QuantType, quant_pre_process, quantize_static

    plain, ready, done = (case.folder / f"{n}.onnx" for n in ("plain", "ready", "done"))
    plain.write_bytes(prepare(network.to_proto(), opset=MIN_OPSET).SerializeToString())
    quant_pre_process(str(plain), str(ready), skip_symbolic_shape=True)
    chosen, _ = select_frames([str(case.video)], case.frames)
    channels, height, width = network_dims(network.inputs[0], cfg)
    show = Preprocessor.from_config(cfg, width, height, channels)

    def prepared() -> Iterator[npt.NDArray[np.float32]]:
        for frame in selected_frames(chosen):
            batch = show.empty(1)
            show(frame, batch[0])
            yield batch

    reader: Any = _Images(network.inputs[0].name, prepared())
    quantize_static(str(ready), str(done), reader, per_channel=True,
                    activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)  # fmt: skip
    return as_network(onnx.load(done), network)


def _times(sessions: Mapping[tuple[str, str], Session]) -> dict[tuple[str, str], float]:
    """Median milliseconds of runs in turns."""
    spec = next(iter(sessions.values())).inputs[0]
    axes = [d if isinstance(d, int) else 1 for d in spec.shape]
    feeds = {spec.name: np.random.default_rng(0).random(axes, np.float32)}
    taken: dict[tuple[str, str], list[float]] = {key: [] for key in sessions}
    for _ in range(_ROUNDS):
        for key, session in sessions.items():
            session.run(feeds)  # caches are those of the one before
            start = perf_counter()
            session.run(feeds)
            taken[key].append((perf_counter() - start) * 1e3)
    return {key: statistics.median(values) for key, values in taken.items()}
