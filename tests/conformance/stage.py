"""The product's inference stage around an engine whose outputs are told instead of computed.

Everything else is the product: selection, scaling, batching, parsing, attaching, the memory of
tracked objects.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from headrace._core.findings import Finding
from headrace.config import ModelConfig
from headrace.engine.backends import RunnerOptions
from headrace.infer.batch import Batch
from headrace.infer.engine_runs import Pending, RawOutput
from headrace.infer.inferencer import Inferencer
from headrace.infer.loaded_model import Model
from headrace.infer.record import Record
from headrace.infer.run_options import RunOptions
from headrace.media import Frame, PixelFormat
from headrace.meta import UNTRACKED_OBJECT_ID, Detections, FrameMeta, InputTensor, Roi, Space
from headrace.network.tensor_spec import TensorSpec
from tests.conformance import build, scripted
from tests.conformance.cases import UnknownShape

Arrays = dict[str, np.ndarray]
UNTRACKED = UNTRACKED_OBJECT_ID
UPSTREAM = 900  # component of the objects that stages find

FUNCTIONS = {
    0: "parse_bbox_func_name",
    1: "parse_classifier_func_name",
    2: "parse_segmentation_func_name",
    3: "parse_bbox_instance_mask_func_name",
}
TYPES = {
    "detector": 0,
    "classifier": 1,
    "segmentation": 2,
    "semantic_segmentation": 2,
    "instance_segmentation": 3,
    "other": 100,
}


def network_type(value: Any) -> int:
    """A network type by number or name."""
    if isinstance(value, str) and value not in TYPES:
        raise UnknownShape(f"network type {value!r}")
    return TYPES[value] if isinstance(value, str) else int(value)


def process_mode(value: Any) -> int:
    """1 or 2, by number or name."""
    return {"primary": 1, "secondary": 2}.get(value, value)


@dataclass
class Engine:
    """A `Session`: `answer(inputs)` makes the outputs; `gate` holds runs back until released."""

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    answer: Callable[[Arrays], Arrays]
    max_batch: int = 1024
    gate: threading.Semaphore | None = None
    batches: list[int] = field(default_factory=list)
    fed: list[Arrays] = field(default_factory=list)
    closed: bool = False
    device: str = "cpu"
    options: RunnerOptions = field(default_factory=RunnerOptions)
    notices: tuple[Finding, ...] = ()
    _pool: ThreadPoolExecutor | None = None

    @property
    def batched_inputs(self) -> frozenset[str]:
        return frozenset(spec.name for spec in self.inputs)

    def run(self, inputs: Mapping[str, Any]) -> Arrays:
        if self.gate is not None and not self.gate.acquire(timeout=20):
            raise RuntimeError("nobody released this run")
        self.batches.append(len(next(iter(inputs.values()))))
        self.fed.append(dict(inputs))
        return self.answer(dict(inputs))

    def submit(self, inputs: Mapping[str, Any]) -> Future[Arrays]:
        self._pool = self._pool or ThreadPoolExecutor(1)
        return self._pool.submit(self.run, inputs)

    def close(self) -> None:
        self.closed = True
        if self._pool is not None:
            self._pool.shutdown()


def engine(
    outputs: Mapping[str, Sequence[int]],
    answer: Callable[[Arrays], Arrays] | None = None,
    *,
    inputs: Mapping[str, tuple[Any, Sequence[int]]] | None = None,
    dtype: Any = np.float32,
    gate: threading.Semaphore | None = None,
) -> Engine:
    """An engine with an image input of 16x16, and outputs of these shapes per item (zeros)."""

    def zeros(fed: Arrays) -> Arrays:
        count = len(next(iter(fed.values())))
        return {name: np.zeros((count, *dims), dtype) for name, dims in outputs.items()}

    fed = inputs or {"image": (np.float32, (3, 16, 16))}
    return Engine(
        tuple(TensorSpec(name, np.dtype(kind), ("n", *dims)) for name, (kind, dims) in fed.items()),
        tuple(TensorSpec(name, np.dtype(dtype), ("n", *dims)) for name, dims in outputs.items()),
        answer or zeros,
        gate=gate,
    )


@dataclass
class Stage:
    """An inferencer and what went through its engine.

    Attributes:
        runs: items of each run: (frame, source, object or None), as the raw output callback sees.
    """

    inferencer: Inferencer
    engine: Engine
    cfg: ModelConfig
    options: RunOptions
    runs: list[list[tuple[int, int, int | None]]] = field(default_factory=list)
    pending: list[Pending] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.inferencer.on_raw_output = self._saw

    def _saw(self, raw: RawOutput) -> None:
        shown = raw.objects if raw.objects is not None else [None] * len(raw.metas)
        self.runs.append([(m.frame, m.source_id, o) for m, o in zip(raw.metas, shown, strict=True)])

    def process(self, batch: Batch) -> list[list[tuple[int, int, int | None]]]:
        """One batch from start to end; its runs."""
        before = len(self.runs)
        self.inferencer.process(batch)
        return self.runs[before:]

    def reload(self) -> None:
        """The same model once more takes the place of the running one."""
        session = Engine(
            self.engine.inputs, self.engine.outputs, self.engine.answer, gate=self.engine.gate
        )
        record = self.inferencer.record
        self.inferencer.replace(Model.around(self.cfg, session, self.options, record))

    @staticmethod
    def finished(pending: Pending) -> None:
        """Wait until all runs of a batch are through the engine."""
        wait([run.future for run in pending.runs], timeout=20)


@contextmanager
def stage(
    values: Mapping[str, Any],
    session: Engine,
    *,
    parser: scripted.Answer | None = None,
    labels: str | None = None,
    all_classes: Mapping[str, Any] | None = None,
    generation: str = "9.1",
    unique_id: int | None = 1,
) -> Iterator[Stage]:
    """A stage of a config with these values; `parser` answers instead of a built-in one.

    Raises:
        HeadraceError: the product refuses to start.
    """
    settings: dict[str, Any] = {"net_scale_factor": 1, "gie_unique_id": unique_id, **values}
    kind = network_type(settings.get("network_type", 0))
    settings["network_type"] = kind
    if kind in (0, 3):
        settings.setdefault("num_detected_classes", 1)
        settings.setdefault("cluster_mode", 4)
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder, "told.onnx")  # looked for, never read
        model.touch()
        settings["onnx_file"] = model
        if parser is not None or len(session.inputs) > 1:
            settings["custom_lib_path"] = library = Path(folder, "scripted_library.py")
            library.write_text(scripted.LIBRARY)
        if parser is not None:
            settings[FUNCTIONS[kind]] = "parse"
            scripted.tell(parser)
        if labels is not None:
            settings["labelfile_path"] = Path(folder, "labels.txt")
            settings["labelfile_path"].write_bytes(labels.encode())
        cfg = build.config(settings, all_classes=all_classes)
        record = Record()
        options = RunOptions(generation=generation)
        inferencer = Inferencer(Model.around(cfg, session, options, record), record)
        try:
            yield Stage(inferencer, session, cfg, options)
        finally:
            inferencer.close()
            scripted.tell(None)


@lru_cache(maxsize=4)
def _black(width: int, height: int) -> np.ndarray:
    return np.zeros((height, width, 3), np.uint8)


def image(width: int = 64, height: int = 64, *, frame: int = 0, source: int = 0) -> Frame:
    """A black frame."""
    return Frame.from_array(
        _black(width, height),
        PixelFormat.RGB,
        frame=frame,
        source=f"pad{source}",
        source_id=source,
        pts_ns=frame * 40_000_000,
    )


def put(
    meta: FrameMeta,
    rects: Sequence[Sequence[float]],
    *,
    components: Sequence[int] | None = None,
    class_ids: Sequence[int] | None = None,
    object_ids: Sequence[int] | None = None,
    label: str | None = None,
) -> None:
    """Objects of an upstream detector."""
    count = len(rects)
    blank = Detections(
        np.zeros((count, 4), np.float32),
        np.ones(count, np.float32),
        np.zeros(count, np.int32),
        space=Space.FRAME,
    )
    meta.objects.append(blank, UPSTREAM, labels=[label] if label is not None else ())
    if not count:
        return
    meta.objects.rects[:] = np.array(rects, np.float32)
    if components is not None:
        meta.objects.component_ids[:] = components
    if class_ids is not None:
        meta.objects.class_ids[:] = class_ids
    if object_ids is not None:
        meta.objects.object_ids[:] = object_ids


def region_tensor(
    name: str,
    data: np.ndarray,
    frames: Sequence[int],
    *,
    targets: Sequence[int] = (1,),
    meta_id: int = 0,
    objects: Sequence[int | None] | None = None,
) -> InputTensor:
    """A prepared tensor whose rows show whole frames of 16x16 pixels."""
    shown = objects or [None] * len(frames)
    rois = [Roi(i, 0, 0, 16, 16, object_index=o) for i, o in zip(frames, shown, strict=True)]
    return InputTensor(name, data, rois, targets, meta_id=meta_id)
