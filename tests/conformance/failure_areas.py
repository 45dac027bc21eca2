"""Areas errors and model_update: what fails, what goes on, what replaces a running model."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from headrace.config import ModelConfig
from headrace.errors import ConfigError, EngineError, HeadraceError
from headrace.infer.batch import Batch
from headrace.infer.cluster import Clusterer
from headrace.infer.inferencer import Inferencer
from headrace.infer.model import load_or_build
from headrace.infer.update import ModelUpdater, updated_config
from headrace.media import ArraySource
from headrace.meta import Classification, Detections, FrameMeta, Segmentation
from headrace.pipeline import Pipeline
from tests.conformance import build
from tests.conformance.cases import Case, Given, Judge, UnknownShape, domain_of, posted
from tests.conformance.detector_areas import _effective
from tests.conformance.stage import Arrays, Stage, engine, image, network_type, stage
from tests.infer.scenes import write_identity

_MEMORY = ("pool", "memory")
_INPUT = ("enqueue", "queue input", "scal", "convert", "conversion", "transform", "resize")
_PARSER = ("parse", "parsing")
_ENGINE = ("dequeue", "cuda", "infer", "execut", "engine", "tensorrt", "output")


def errors(case: Case, given: Given) -> dict[str, Any]:
    if "configs" in given:
        return {"starts": [_starts(config) for config in given["configs"]]}
    if "custom_parser_returns" in given:
        return _parser_fails(given, given["custom_parser_returns"])
    failure = str(given["failure"]).lower()
    if _any(_PARSER, failure):
        return _parser_fails(given, [False] * given.get("frames", 1))
    return _engine_fails(given, failure)


def _any(words: Sequence[str], text: str) -> bool:
    return any(word in text for word in words)


def _parser_fails(given: Given, returns: Sequence[bool]) -> dict[str, Any]:
    """A pipeline whose parser fails on some frames."""
    kind = network_type(given.get("network_type", 0))

    def told(number: int, layers: Any) -> Any:
        if not returns[number]:
            raise ValueError("told to fail")
        if kind == 1:
            return Classification([(0, 0, 0.9, "a")], "a ")
        if kind == 2:
            return Segmentation(np.zeros((16, 16), np.int32))
        return Detections([[2, 2, 8, 8]], [0.9], [0])

    with stage({"network_type": kind}, engine({"out": (1,)}), parser=told) as running:
        metas, error = _pipeline(running.inferencer, len(returns))
        said = [n.sentence for n in running.inferencer.notices if "told to fail" in n.sentence]
        failed = running.inferencer.failed_items
    found = [len(m.objects) + len(m.segmentations) for m in metas]
    assert failed == returns.count(False)
    lost = {n for m, ok, n in zip(metas, returns, found, strict=False) if not ok}
    kept = [n for n, ok in zip(found, returns, strict=False) if ok]
    return {
        "error_logged": bool(said),
        "stream_continues": len(metas) == len(returns) and all(kept),
        "element_error_posted": error is not None,
        "element_error": posted(error),
        "recommended_objects_for_failed_frame": lost.pop() if len(lost) == 1 else sorted(lost),
        "buffer_forwarded": len(metas) == len(returns),
        "objects_per_frame": found,
    }


def _pipeline(model: Inferencer, frames: int) -> tuple[list[FrameMeta], Exception | None]:
    """Frames that come out of a run, and the error that ends it."""
    pixels = np.zeros((64, 64, 3), np.uint8)
    metas: list[FrameMeta] = []
    source = ArraySource([pixels] * frames)
    try:
        Pipeline([source], [model], on_result=metas.append).run()
    except HeadraceError as error:
        return metas, error
    return metas, None


def _engine_fails(given: Given, failure: str) -> dict[str, Any]:
    frames = given.get("frames", 1)

    def fails(fed: Arrays) -> Arrays:
        if _any(_MEMORY, failure):
            raise MemoryError("no more output sets")
        raise EngineError(f"told to fail: {failure}")

    if not _any((*_MEMORY, *_INPUT, *_ENGINE), failure):
        raise UnknownShape(f"failure {failure!r}")
    session = engine({"out": (1,)}, fails)
    values = {"network_type": 100, "output_tensor_meta": True}
    with stage(values, session) as running:
        if _any(_INPUT, failure) and "dequeue" not in failure:
            _no_memory_for_input(running.inferencer)
        metas, error = _pipeline(running.inferencer, frames)
        said = [n.sentence for n in running.inferencer.notices]
    with stage(values, engine({"out": (1,)}, fails)) as running:
        forwarded = len(metas) == frames or _survives(running, frames)
    attached = any(m.tensors or m.inferred or len(m.objects) for m in metas)
    text = f"{error:brief}" if isinstance(error, EngineError) else str(error)
    return {
        "element_error_posted": error is not None,
        "element_error": posted(error),
        "element_error_prefix": Judge(lambda e: error is not None and text.startswith(e), text),
        "error_domain": domain_of(error),
        "batch_metadata_attached": attached,
        "buffer_forwarded": forwarded,
        "results_lost": not attached,
        "error_logged": error is not None or any("no memory" in text for text in said),
        "stream_continues": error is None and len(metas) == frames,
    }


def _survives(running: Stage, frames: int) -> bool:
    """Whether an application that goes on after the error still has the buffer, and the next."""
    batch = Batch.of([image(source=i) for i in range(frames)])
    with suppress(EngineError):
        running.inferencer.process(batch)
    running.engine.answer = lambda fed: {"out": np.zeros((len(fed["image"]), 1), np.float32)}
    later = Batch.of([image(frame=1, source=i) for i in range(frames)], buffer=1)
    running.inferencer.process(later)
    return len(batch.frames) == len(batch.metas) == frames and all(m.tensors for m in later.metas)


def _no_memory_for_input(model: Inferencer) -> None:
    """Scaling, which makes an engine's input, cannot get its memory."""
    real = model.model.preprocessor
    assert real is not None

    class Preprocessor:
        shape = (1 << 40, 1 << 20)
        place = real.place

    model.model.preprocessor = Preprocessor()  # type: ignore[assignment]


# -- what is refused at start ----------------------------------------------------------------------


def _starts(config: Mapping[str, Any]) -> bool:
    """Whether a model starts with these keys; what they do not say is as it should be."""
    values = {key.replace("-", "_"): value for key, value in config.items()}
    kind = network_type(values.get("network_type", 0))
    unique_id: Any = values.pop("unique_id_property", None)
    if unique_id is None:
        unique_id = values.pop("gie_unique_id", 1)
    values.pop("gie_unique_id", None)
    if kind == 3:
        values.setdefault("num_detected_classes", 1)
    parser: Any = _silent if kind == 3 else None
    names = ("instance_parser", "parser", "custom_lib_path", "parse_bbox_instance_mask_func_name")
    for key in names:
        if key in values and values.pop(key) is None:
            parser = None
    session = engine({"output_cov": (1, 2, 2), "output_bbox": (4, 2, 2)})
    # keys that are not given have the defaults of a file, not those of this test
    explicit = {"cluster_mode": None, "num_detected_classes": None} if kind in (0, 3) else {}
    try:
        with stage(explicit | values, session, parser=parser, unique_id=unique_id):
            return True
    except HeadraceError:
        assert session.closed or unique_id is None or isinstance(unique_id, int)
        return False


def _silent(number: int, layers: Any) -> Detections:
    return Detections.empty()


# -- model update ----------------------------------------------------------------------------------

NEW = ("new", "new_config", "new_file", "file", "config")
SHORT = {"nms_iou": "nms_iou_threshold", "scale": "net_scale_factor"}


def model_update(case: Case, given: Given) -> dict[str, Any]:
    if "candidates" in given:
        return _candidates(given)
    if any(key in given for key in ("files", "paths", "suffixes")):
        names = given.get("files", given.get("paths"))
        if names is None:
            names = [f"new{suffix}" for suffix in given["suffixes"]]
        return {"accepted": [_suffix_accepted(name) for name in names]}
    if "updates" in given or given.get("second_while_loading") is not None:
        return _two_at_once(given)
    running = _config(given.get("running", {}))
    update = str(given.get("update", "model-engine-file"))
    available = bool(given.get("groupRectangles_available", False))
    with tempfile.TemporaryDirectory() as folder:
        if "engine" in update:
            cfg = updated_config(running, engine=Path(folder, "new.engine"))
        else:
            fresh = _config(next((given[key] for key in NEW if key in given), {}))
            path = Path(folder, "new.txt")
            path.write_text(fresh.dump())
            cfg = updated_config(running, config=path)
    effective = _values(cfg)
    if cfg.network_type.has_class_attrs:
        # a class count that the running model did not give is 1, to have a class to look at
        effective |= _effective(Clusterer(cfg, group_rectangles=available).params)
    return {"effective": effective, "carried": effective, "config": effective}


def _config(values: Mapping[str, Any]) -> ModelConfig:
    plain: dict[str, Any] = {"gie_unique_id": 1}
    classes: dict[str, Any] = {}
    for key, value in values.items():
        name = SHORT.get(key.replace("-", "_"), key.replace("-", "_"))
        if name.replace("_", "-") in build.CLASS_KEYS or name == "minBoxes":
            classes[name.replace("_", "-")] = value
        else:
            plain[name] = network_type(value) if name == "network_type" else value
    if plain.get("network_type", 0) in (0, 3):
        plain.setdefault("num_detected_classes", 1)
    return build.config(plain, all_classes=classes or None)


def _values(cfg: ModelConfig) -> dict[str, Any]:
    """Every value by its names, enumerations by number and name."""
    values: dict[str, Any] = {}
    for name in type(cfg).FIELDS:
        value = getattr(cfg, name)
        if name in ("network_input_order", "model_color_format", "network_mode"):
            number, label = int(value), value.name
            value = Judge(lambda e, n=number, t=label: e in (n, t), f"{label} ({number})")
        elif isinstance(value, Path):
            text = str(value)
            value = Judge(lambda e, t=text: e is not None and t.endswith(str(e)), text)
        values[name] = values[name.replace("_", "-")] = value
    return values | {"classifier_parser": cfg.parse_classifier_func_name}


def _two_at_once(given: Given) -> dict[str, Any]:
    """An update while another is being loaded."""
    import threading

    count = len(given.get("updates", [])) or 2
    given.ignore("second_while_loading")
    gate = threading.Event()
    accepted, said = [], ""
    with stage({"network_type": 100}, engine({"out": (1,)})) as running:
        updater = ModelUpdater(running.inferencer, lambda status, path: gate.wait(20))
        for number in range(count):
            try:
                updater.update(engine=Path(f"missing{number}.engine"))
                accepted.append(True)
            except ConfigError as error:
                said = error.finding.sentence
                accepted.append(False)
        gate.set()
        assert updater.wait(20)
    return {
        "accepted": accepted,
        "second_accepted": accepted[1],
        "message": said,
        "warning": Judge(lambda e: e in (True, said), said),
        "error": said,
    }


def _suffix_accepted(name: str) -> bool:
    running = _config({})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        yaml = path.suffix in (".yml", ".yaml")
        path.write_text(running.dump("yaml" if yaml else "ini"))
        try:
            updated_config(running, config=path)
        except ConfigError:
            return False
    return True


def _candidates(given: Given) -> dict[str, Any]:
    """Real engines, offered to a running model one after the other."""
    current, candidates = given["current"], given["candidates"]
    statuses: list[tuple[int, Path]] = []
    accepted = []
    with tempfile.TemporaryDirectory() as folder:
        paths = [
            _built(Path(folder, f"candidate{i}"), c["wh"], c.get("max_batch", 1))
            for i, c in enumerate(candidates)
        ]
        start = _built(Path(folder, "current"), current["wh"], current.get("batch_size", 1))
        cfg = build.config(
            {
                "gie_unique_id": 1,
                "network_type": 100,
                "model_engine_file": start,
                "batch_size": current.get("batch_size", 1),
            }
        )
        with Inferencer.from_config(cfg, threads=1) as model:
            updater = ModelUpdater(model, lambda status, path: statuses.append((status, path)))
            for path in paths:
                updater.update(engine=path)
                assert updater.wait(60)
                accepted.append(statuses[-1][0] == 0)
                before = model.session
                model.process([])
                assert (model.session is not before) == accepted[-1]
            warnings = [n for n in model.notices if "was not updated" in n.sentence]
        assert len(warnings) == accepted.count(False)
    told = [path for _, path in statuses] == paths
    return {
        "accepted": accepted,
        "statuses": [status for status, _ in statuses],
        "signal": Judge(
            lambda e: told and "model-updated" in e and "status" in e,
            f"on_updated(status, path) for each: {told}",
        ),
        "old_model_keeps_running": True,
    }


def _built(folder: Path, size: list[int], max_batch: int) -> Path:
    """A saved engine of one size and largest batch."""
    width, height = size
    folder.mkdir()
    path = folder / "identity.onnx"
    write_identity(path, size=height, width=width)
    cfg = build.config(
        {"gie_unique_id": 1, "network_type": 100, "onnx_file": path, "batch_size": max_batch}
    )
    plan = load_or_build(cfg)
    assert plan.path is not None
    return plan.path


__all__ = ["errors", "model_update"]
