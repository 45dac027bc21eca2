"""Areas scheduling and tensor_input: which buffers are inferred, in which batches."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from headrace.config import ModelConfig
from headrace.errors import HeadraceError
from headrace.infer.batch import Batch
from headrace.infer.inferencer import Inferencer
from headrace.infer.model import load_or_build
from headrace.meta import Detections
from tests.conformance import build, scripted
from tests.conformance.cases import Case, Given, Judge, UnknownShape, posted
from tests.conformance.stage import (
    Stage,
    engine,
    image,
    network_type,
    put,
    region_tensor,
    stage,
)

TENSOR_MODES = ("tensor", "tensor_meta", "tensor-meta", "tensor_input", "input_tensor_meta")


def scheduling(case: Case, given: Given) -> dict[str, Any]:
    if "engine_min_batch" in given or "engine_static_batch" in given:
        return _static_batch(given)
    mode = given.get("mode", "primary")
    tensors = mode in TENSOR_MODES
    secondary = mode in ("secondary", 2)
    kind = network_type(given.get("network_type", 0))
    values = {
        "network_type": kind,
        "process_mode": 2 if secondary else 1,
        "interval": given.get("interval", 0),
        "batch_size": given.get("batch_size", 1),
        "stabilize_buffer_count": given.get("stabilize_buffer_count", 0),
        "input_tensor_from_meta": tensors,
    }
    calls: list[int] = []

    def told(number: int, layers: Any) -> Any:
        calls.append(len(running.runs) - 1)
        return Detections.empty() if kind in (0, 3) else _nothing(kind)

    session = engine({"out": (1,)})
    parser = None if kind == 100 else told
    events = list(_events(given))
    own = given.get("unique_id", 99)
    with stage(values, session, parser=parser, unique_id=own) as running:
        inferred, forwarded, batches, shown = _play(running, events, secondary, tensors)
    flags: list[Any] = [number for number, done in inferred if done]
    if any(isinstance(e, str) for e in case.expect.get("inferred", ())):
        named = [str(e) for e in _listed(given) if _is_buffer(e)]
        flags = [named[number] for number in flags]
    one = "eligible_objects_per_frame" in given
    return {
        "inferred": flags,
        "forwarded": forwarded,
        "dropped": [n for n, _ in inferred if n not in forwarded],
        "inference_batches": batches[0] if one else batches,
        "frame_of_each": shown,
        "parser_calls": len(calls),
        "calls_per_inference_batch": [calls.count(i) for i in range(len(session.batches))],
        "inference_count": len(session.batches),
    }


def _play(
    running: Stage, events: list[Any], secondary: bool, tensors: bool
) -> tuple[list[tuple[int, bool]], list[int], list[list[int]], list[int]]:
    """(buffer, inferred) of each, buffers passed on, sizes of runs, frame of each item."""
    inferred: list[tuple[int, bool]] = []
    forwarded: list[int] = []
    batches: list[list[int]] = []
    shown: list[int] = []
    number = 0
    for event in events:
        if isinstance(event, str):
            _happen(running, event)
            continue
        frames: list[int] = event
        batch = Batch.of([image(frame=number, source=i) for i in range(len(frames))], buffer=number)
        for meta, count in zip(batch.metas, frames, strict=True):
            if secondary:
                put(meta, [[0, 0, 16, 16]] * count)
        if tensors and frames:
            rows = [i for i, count in enumerate(frames) for _ in range(max(count, 1))]
            data = np.zeros((len(rows), 3, 16, 16), np.float32)
            own = running.cfg.component_id
            batch.tensors.append(region_tensor("image", data, rows, targets=[own]))
        runs = running.process(batch)
        inferred.append((number, bool(runs)))
        forwarded += [number] * bool(len(batch) or not frames)
        batches.append([len(run) for run in runs])
        shown += [source for run in runs for _, source, _ in run]
        number += 1
    return inferred, forwarded, batches, shown


def _events(given: Given) -> Iterator[Any]:
    """Buffers as lists of objects per frame, and events as texts."""
    if "eligible_objects_per_frame" in given:
        yield list(given["eligible_objects_per_frame"])
    elif "eligible_objects_per_frame_of_buffers" in given:
        yield from (list(frames) for frames in given["eligible_objects_per_frame_of_buffers"])
    elif "frames_per_buffer" in given:
        counts = given["frames_per_buffer"]
        if isinstance(counts, int):
            counts = [counts] * given.get("buffers", 1)
        given.ignore("buffers")
        yield from ([1] * count for count in counts)
    elif _listed(given):
        for event in _listed(given):
            yield [1] if _is_buffer(event) else str(event)
    else:
        changes = {c["buffer"]: c["interval"] for c in given.get("interval_changes", ())}
        ends = given.get("eos_after", given.get("eos_before", ()))
        ends = [ends] if isinstance(ends, int) else list(ends)
        shift = 0 if "eos_after" in given else 1
        for number in range(given["buffers"]):
            if number in changes:
                yield f"INTERVAL={changes[number]}"
            if shift and number in ends:
                yield "EOS"
            yield [1]
            if not shift and number in ends:
                yield "EOS"


def _listed(given: Given) -> list[Any]:
    """Buffers and what happens between them, where a case lists them."""
    events = given.get("events", given.get("buffers") if "buffers" in given else None)
    return events if isinstance(events, list) else []


def _is_buffer(event: Any) -> bool:
    return re.fullmatch(r"(b|f|buffer)?\s*\d*", str(event)) is not None


def _happen(running: Stage, event: str) -> None:
    plain = event.upper().replace("-", "_").replace(" ", "_")
    number = re.search(r"(\d+)$", plain)
    if "STREAM_EOS" in plain:
        running.inferencer.end_of_stream(0)
    elif "EOS" in plain:
        running.inferencer.restart()
    elif "INTERVAL" in plain and number:
        running.inferencer.interval = int(number[1])
    elif "MODEL" in plain or "UPDATE" in plain:
        running.reload()
    else:
        raise UnknownShape(f"event {event!r}")


def _nothing(kind: int) -> Any:
    from headrace.meta import Classification, Segmentation

    return Classification() if kind == 1 else Segmentation(np.full((16, 16), -1, np.int32))


def _static_batch(given: Given) -> dict[str, Any]:
    """A real engine whose outputs tell how many rows each run had."""
    size = given.get("engine_min_batch", given.get("engine_static_batch"))
    items = given["items"]
    found: list[int] = []

    def told(number: int, layers: Any) -> Detections:
        (layer,) = layers.values()
        found.append(round(float(layer.data[0])))
        return Detections.empty()

    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.onnx")
        _write_row_counter(path, size)
        library = Path(folder, "scripted_library.py")
        library.write_text(scripted.LIBRARY)
        scripted.tell(told)
        cfg: ModelConfig = build.config(
            {
                "gie_unique_id": 1,
                "onnx_file": path,
                "batch_size": given.get("batch_size", size),
                "num_detected_classes": 1,
                "cluster_mode": 4,
                "custom_lib_path": library,
                "parse_bbox_func_name": "parse",
            }
        )
        assert load_or_build(cfg).header.fixed_batch == size
        with Inferencer.from_config(cfg, threads=1) as model:
            metas = model.process([image(source=i) for i in range(items)])
        scripted.tell(None)
    assert all(meta.inferred for meta in metas)
    return {
        "executed_batch": found[0] if len(set(found)) == 1 else found,
        "parsed_items": len(found),
        "inferred_items": len(metas),
    }


def _write_row_counter(path: Any, size: int) -> None:
    """An ONNX model of a fixed batch whose output row is the number of rows it was given."""
    shape = [size, 3, 16, 16]
    nodes = [
        helper.make_node("ReduceSum", ["image"], ["all"], keepdims=1),
        helper.make_node("Mul", ["image", "zero"], ["nothing"]),
        helper.make_node("Add", ["nothing", "one"], ["ones"]),
        helper.make_node("ReduceMean", ["ones"], ["row"], axes=[1, 2, 3], keepdims=0),
        helper.make_node("ReduceSum", ["row"], ["rows"], keepdims=1),
        helper.make_node("Mul", ["row", "rows"], ["told"]),
        helper.make_node("Unsqueeze", ["told", "axis"], ["out"]),
    ]
    graph = helper.make_graph(
        nodes[1:],
        "rows",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, [size, 1])],
        [
            helper.make_tensor("zero", TensorProto.FLOAT, [], [0.0]),
            helper.make_tensor("one", TensorProto.FLOAT, [], [1.0]),
            helper.make_tensor("axis", TensorProto.INT64, [1], [1]),
        ],
    )
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)


# -- tensors of the caller -------------------------------------------------------------------------


def tensor_input(case: Case, given: Given) -> dict[str, Any]:
    if "metas" in given or "input_layers" in given:
        return _chosen(given)
    return _chunks(given)


def _address(data: np.ndarray) -> int:
    return int(data.__array_interface__["data"][0])


def _chunks(given: Given) -> dict[str, Any]:
    """One tensor of many rows, cut; offsets are those of what the engine is fed."""
    rows = given.get("roi_count", given.get("rois"))
    size = given.get("bytes_per_item", 768)
    kind, elements = (np.float32, size // 4) if size % 4 == 0 else (np.uint8, size)
    data = np.zeros((given.get("tensor_rows", rows), elements), kind)
    values = {
        "network_type": 100,
        "input_tensor_from_meta": True,
        "batch_size": given["batch_size"],
        "interval": given.get("interval", 0),
    }
    session = engine({"out": (1,)}, inputs={"tensor": (kind, (elements,))})
    batch = Batch.of([image()])
    tensor = region_tensor("tensor", data, [0] * rows)
    batch.tensors.append(tensor)
    with stage(values, session) as running:
        try:
            running.process(batch)
        except HeadraceError as error:
            said = str(error)
            shown = Judge(lambda e: e is True or str(e) in said, said)
            return {
                "error": shown,
                "element_error_posted": True,
                "element_error": posted(error),
                "inference_batches": [],
            }
    return {
        "inference_batches": session.batches,
        "buffer_offsets": [_address(fed["tensor"]) - _address(tensor.data) for fed in session.fed],
        "element_error_posted": False,
        "element_error": posted(None),
    }


def _chosen(given: Given) -> dict[str, Any]:
    """Which of several tensors run, and together with which."""
    names = given.get("input_layers", ["input_1"])
    metas = given["metas"]
    known = {"targets", "target_ids", "tensor", "name", "meta_id", "rois", "rows", "batch"}
    session = engine({"out": (1,)}, inputs=dict.fromkeys(names, (np.float32, (4,))))
    batch = Batch.of([image()])
    for place, meta in enumerate(metas):
        if set(meta) - known:
            raise UnknownShape(f"a tensor has {sorted(set(meta) - known)}")
        rows = meta.get("rows", meta.get("batch", meta.get("rois", 1)))
        rois = meta.get("rois", rows)
        data = np.full((rows, 4), place, np.float32)
        name = meta.get("tensor", meta.get("name"))
        if name is None:
            continue
        tensor = region_tensor(
            name,
            data,
            [0] * rois,
            targets=meta.get("targets", meta.get("target_ids", [])),
            meta_id=meta.get("meta_id", 1000 + place),
        )
        batch.tensors.append(tensor)
    values = {
        "network_type": 100,
        "input_tensor_from_meta": True,
        "output_tensor_meta": True,
        "batch_size": given.get("batch_size", 16),
    }
    failure: HeadraceError | None = None
    with stage(values, session, unique_id=given.get("unique_id", 1)) as running:
        try:
            running.process(batch)
        except HeadraceError as error:
            failure = error
        before = {n.sentence for n in running.inferencer.config.notices}
        said = [n for n in running.inferencer.notices if n.sentence not in before]
    text = "" if failure is None else str(failure)
    used = [sorted({int(data[0, 0]) for data in fed.values()}) for fed in session.fed]
    return {
        "used": sorted(number for run in used for number in run),
        "inferences": len(session.batches),
        "used_together": used,
        "inference_batches": session.batches,
        "warnings": sum(n.level == "warning" for n in said),
        "element_error_posted": failure is not None,
        "element_error": posted(failure),
        "error": Judge(lambda e: e == bool(text) or str(e) in text, text),
        "stream_continues": failure is None,
        "items": sum(session.batches),
    }


__all__ = ["scheduling", "tensor_input"]
