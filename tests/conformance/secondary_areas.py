"""Area secondary: which objects are inferred on, when again, and which label they carry."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from headrace.infer.batch import Batch
from headrace.infer.selection import Selector
from headrace.meta import Classification, ClassifierMeta, FrameMeta, LabelInfo
from tests.conformance.cases import Case, Given, UnknownShape
from tests.conformance.stage import (
    UNTRACKED,
    Engine,
    Stage,
    engine,
    image,
    network_type,
    put,
    stage,
)
from tests.infer.oracle_selection import remembered_entry

SIZE = 100.0
FRAME = (1920, 1080)
DEFAULT_INTERVAL = 2147483647
WAITING = 3  # batches an asynchronous classifier lets wait; the next holds the stream back
KEYS = (
    "operate_on_gie_id",
    "operate_on_class_ids",
    "input_object_min_width",
    "input_object_min_height",
    "input_object_max_width",
    "input_object_max_height",
    "batch_size",
    "interval",
)
NAMES = {
    "id", "gie", "gie_id", "component", "component_id", "cls", "class_id", "w", "h", "width",
    "height", "x", "y", "left", "top", "f", "frame", "pad", "pad_index", "source", "source_id",
    "object_id", "wh", "tracking_id",
}  # fmt: skip


@dataclass
class Thing:
    """An object of one frame of one source."""

    frame: int
    pad: int
    name: Any
    rect: tuple[float, float, float, float]
    gie: int
    cls: int
    object_id: int


@dataclass
class Seen:
    """What happened to each thing."""

    inferred: list[Thing]
    labelled: list[Thing]
    texts: dict[int, str]
    warnings: list[str] = field(default_factory=list)


def secondary(case: Case, given: Given) -> dict[str, Any]:
    kind = given.get("network", given.get("network_type"))
    interval = given.get("secondary_reinfer_interval", DEFAULT_INTERVAL)
    if isinstance(interval, str):
        number = re.search(r"\d+", interval)
        interval = int(number[0]) if number else DEFAULT_INTERVAL
    values = {"secondary_reinfer_interval": interval}
    values |= {key: given[key] for key in KEYS if key in given}
    latency = given.get("inference_latency_frames", 1)
    mode = given.get("mode")
    if mode is None and "classifier_async_mode" in given:
        mode = "async" if given["classifier_async_mode"] else "sync"
    own_id = given.get("unique_id", 99)
    if "entries" in given:
        values |= {"network_type": network_type(kind or "classifier")}
        return _kept_entries(case, given, values, own_id)
    texts = _texts(given)
    objects = list(_things(given))
    events = _events(given, objects)
    times = given.get("pts_seconds", given.get("pts_s"))

    def play(network: Any, *, asynchronous: bool) -> Seen:
        settings = values | {
            "network_type": network_type(network),
            "classifier_async_mode": asynchronous,
        }
        late = latency if asynchronous else 0
        return _play(case, settings, events, texts, own_id, late, times)

    seen = play(kind or "classifier", asynchronous=mode == "async")
    as_event = "events" in given
    actual = _told(given, seen, as_event)
    if kind is None:
        for name in ("classifier", "detector", "segmentation", "instance_segmentation"):
            if f"{name}_inferred_at" in case.expect:
                other = play(name, asynchronous=False)
                actual[f"{name}_inferred_at"] = _frames(other.inferred)
    for name in ("sync", "async"):
        for key in ("inferred_at", "label_attached_at"):
            if f"{name}_{key}" in case.expect:
                other = play(kind or "classifier", asynchronous=name == "async")
                found = other.inferred if key == "inferred_at" else other.labelled
                actual[f"{name}_{key}"] = _frames(found)
    rects = np.array([thing.rect for thing in objects], np.float32).reshape(-1, 4)
    with _stage(case, values | {"network_type": network_type(kind or "classifier")}, own_id) as s:
        selector = Selector(s.cfg, generation=case.generation)  # type: ignore[arg-type]
        passed = np.flatnonzero(selector.passes_size(rects)).tolist()
    actual["passes_size_filter"] = [objects[i].name for i in passed]
    for key in ("rejected", "skipped", "not_inferred"):
        actual[key] = [o.name for o in objects if o.name not in actual["inferred"]]
    return actual


def _told(given: Given, seen: Seen, as_event: bool) -> dict[str, Any]:
    frames, labelled = _frames(seen.inferred), _frames(seen.labelled)
    first = [] if "last_inferred_wh" not in given else frames[:1]
    if first:
        frames, labelled = frames[1:], [f for f in labelled if f not in first]
    names: list[Any] = [thing.name for thing in seen.inferred]
    if any(isinstance(o, Mapping) and ("f" in o or "frame" in o) for o in given.get("objects", ())):
        names = [[thing.frame, thing.pad] for thing in seen.inferred]
    spoken = [f"f{n}" for n in frames] if as_event else frames
    return {
        "inferred": names,
        "inferred_at": spoken,
        "reinferred_at": frames,
        "label_attached_at": [f"f{n}" for n in labelled] if as_event else labelled,
        "labels": [seen.texts.get(n, "") for n in sorted(seen.texts)],
        "label_at": {str(n): text for n, text in seen.texts.items()},
        "inferences": len(seen.inferred),
        "warnings": len(seen.warnings),
    }


def _frames(things: Sequence[Thing]) -> list[int]:
    return list(dict.fromkeys(thing.frame for thing in things))


def _kept_entries(
    case: Case, given: Given, values: Mapping[str, Any], own_id: int
) -> dict[str, Any]:
    """Which tracked objects are still known after so many buffers."""
    given.ignore("tracked")
    buffers = given.get("buffers", given.get("current_frame"))
    last: dict[int, list[Mapping[str, Any]]] = {}
    for entry in given["entries"]:
        seen_at = entry.get("last_seen_frame", entry.get("last_accessed", entry.get("f", 0)))
        last.setdefault(seen_at, []).append(entry)
    with _stage(case, values, own_id) as running:
        selector = Selector(running.cfg, generation=case.generation)  # type: ignore[arg-type]
        for number in range(buffers):
            selector.next_buffer()
            (meta,) = Batch.of([image(frame=number)]).metas
            here = last.get(number, ())
            put(meta, [[0, 0, 16, 16]] * len(here), object_ids=[e["id"] for e in here])
            selection = selector.select(meta)
            done = [not here[i].get("under_inference", False) for i in selection.infer.tolist()]
            for place, finished in enumerate(done):
                if finished:
                    selector.store_many(selection, [_said("red ")], place)
        selector.next_buffer()
        names = [entry["id"] for entry in given["entries"]]
        kept = [name for name in names if remembered_entry(selector, 0, name) is not None]
    return {"kept": kept, "removed": [name for name in names if name not in kept]}


def _said(text: str) -> ClassifierMeta:
    return ClassifierMeta(1, (LabelInfo(0, 0, 0.9, text.strip()),), text)


# -- what a case says about objects ----------------------------------------------------------------


def _thing(values: Mapping[str, Any], place: int, defaults: Mapping[str, Any]) -> Thing:
    if set(values) - NAMES:
        raise UnknownShape(f"an object has {sorted(set(values) - NAMES)}")

    def one(*names: str, default: Any) -> Any:
        for name in names:
            if name in values:
                return values[name]
        return default

    wh = values.get("wh", [SIZE, SIZE])
    width, height = one("w", "width", default=wh[0]), one("h", "height", default=wh[1])
    object_id = one("object_id", "tracking_id", default=defaults["object_id"])
    if object_id is None or object_id == "untracked":
        object_id = UNTRACKED
    return Thing(
        one("f", "frame", default=0),
        one("pad", "pad_index", "source", "source_id", default=0),
        one("id", default=place),
        (one("x", "left", default=0), one("y", "top", default=0), width, height),
        one("gie", "gie_id", "component", "component_id", default=1),
        one("cls", "class_id", default=0),
        object_id,
    )


def _things(given: Given) -> Iterator[Thing]:
    """The objects in the order of the stream, one frame after the other."""
    tracked = given.get("tracked", True)
    ids: Any = {"object_id": given.get("object_id", 1) if tracked else UNTRACKED}
    if "objects" in given and "frames" not in given and "events" not in given:
        objects = given["objects"]
        loose = not any("f" in o or "frame" in o for o in objects)
        for place, values in enumerate(objects):
            # objects of one frame without ids are different ones
            own = {"object_id": 1000 + place} if loose and "object_id" not in given else ids
            yield _thing(values, place, own)
        return
    base = dict(given["objects"][0]) if given.get("objects") else {}
    if "last_inferred_wh" in given:
        first = min(f["f"] for f in given["frames"]) - 1
        yield _thing(base | {"f": first, "wh": given["last_inferred_wh"]}, 0, ids)
    grows = bool(given.get("area_grows_each_frame", False))
    given.ignore("constant_size")
    for place, values in enumerate(_frame_list(given)):
        side = SIZE * (1.5**place if grows else 1)
        yield _thing({"wh": [min(side, 1900), SIZE]} | base | values, place, ids)


def _frame_list(given: Given) -> list[dict[str, Any]]:
    if "events" in given:
        return [{"f": n} for n in (_event_frame(e) for e in given["events"]) if n is not None]
    frames = given.get("frames", given.get("frame_range"))
    if isinstance(frames, int):
        return [{"f": n} for n in range(frames)]
    if isinstance(frames, list) and frames and all(isinstance(f, int) for f in frames):
        rising = len(frames) == 2 and frames[0] < frames[1]
        numbers = range(frames[0], frames[1] + 1) if rising else frames
        return [{"f": n} for n in numbers]
    if isinstance(frames, list) and all(isinstance(f, Mapping) for f in frames):
        return [dict(f) for f in frames]
    raise UnknownShape(f"frames {frames!r}")


def _event_frame(event: Any) -> int | None:
    if isinstance(event, int):
        return event
    match = re.fullmatch(r"f(\d+)", str(event))
    return int(match[1]) if match else None


def _events(given: Given, things: list[Thing]) -> list[Any]:
    """Frames as lists of things, and events as texts."""
    frames: dict[int, list[Thing]] = {}
    for thing in things:
        frames.setdefault(thing.frame, []).append(thing)
    if "events" not in given:
        return list(frames.values())
    played: list[Any] = []
    for event in given["events"]:
        number = _event_frame(event)
        played.append(str(event).upper() if number is None else frames[number])
    return played


def _texts(given: Given) -> dict[int, str] | str:
    """The text of each inference in turn, or of all."""
    if "results" in given:
        return dict(enumerate(given["results"]))
    return str(given.get("result", given.get("result_at_first_inference", "red ")))


# -- playing it ------------------------------------------------------------------------------------


def _stage(case: Case, values: Mapping[str, Any], own_id: int, **more: Any) -> Any:
    settings = {"process_mode": 2, **values}
    kind = settings["network_type"]
    if kind in (0, 3):
        settings |= {"num_detected_classes": 1}
    session: Engine = more.pop("session", None) or engine({"out": (1,)})
    parser = more.pop("parser", None)
    if parser is None and kind != 100:
        parser = _silent
    return stage(settings, session, parser=parser, generation=case.generation, unique_id=own_id)


def _silent(number: int, layers: Any) -> Any:
    """A parser that finds nothing: only what is inferred on is asked."""
    from headrace.meta import Detections

    return Detections.empty()


def _play(
    case: Case,
    values: Mapping[str, Any],
    events: Sequence[Any],
    texts: dict[int, str] | str,
    own_id: int,
    latency: int,
    times: Sequence[float] | None,
) -> Seen:
    gate = threading.Semaphore(0) if values["classifier_async_mode"] else None

    def answers(number: int, layers: Any) -> Any:
        text = texts if isinstance(texts, str) else texts.get(number, "")
        kind = values["network_type"]
        if kind == 1:
            return Classification([(0, 0, 0.9, text.strip())] if text else [], text)
        return _silent(number, layers) if kind in (0, 3) else _no_classes()

    seen = Seen([], [], {})
    session = engine({"out": (1,)}, gate=gate)
    with _stage(case, values, own_id, session=session, parser=answers) as running:
        waiting: list[tuple[int, Any]] = []
        played = 0
        known = len(running.inferencer.notices)
        try:
            for event in events:
                if isinstance(event, str):
                    _happen(running, event)
                    continue
                number = event[0].frame
                while waiting and (number - waiting[0][0] >= latency or len(waiting) >= WAITING):
                    _release(gate, waiting.pop(0)[1])
                batch = _batch(event)
                if times is not None:
                    for meta in batch.metas:
                        meta.pts_ns = round(times[played] * 1e9)
                played += 1
                before = running.inferencer.begin(batch) if gate is not None else None
                if before is None:
                    running.process(batch)
                else:
                    running.inferencer.complete(before)
                    if before.runs:
                        waiting.append((number, before))
                chosen = _submitted(running, batch, before)
                seen.inferred += [t for i, t in _placed(event) if i in chosen]
                _labels(event, batch, seen)
            told = running.inferencer.notices[known:]
            seen.warnings += [n.sentence for n in told if n.level == "warning"]
        finally:
            for _, pending in waiting:
                _release(gate, pending)
    return seen


def _release(gate: threading.Semaphore | None, pending: Any) -> None:
    if gate is not None:
        for _ in pending.runs:
            gate.release()
        Stage.finished(pending)


def _submitted(running: Stage, batch: Batch, pending: Any) -> set[tuple[int, int]]:
    """(source, object) of what was submitted for this batch."""
    if pending is not None:
        return {
            (meta.source_id, o)
            for run in pending.runs
            for meta, o in zip(run.items.metas, run.items.objects, strict=True)
        }
    runs, running.runs[:] = list(running.runs), []
    return {(source, o) for run in runs for _, source, o in run if o is not None}


def _no_classes() -> Any:
    from headrace.meta import Segmentation

    return Segmentation(np.full((16, 16), -1, np.int32))


def _happen(running: Stage, event: str) -> None:
    plain = event.replace("-", "_").replace(" ", "_")
    pad = re.search(r"(\d+)$", plain)
    if "EOS" in plain or "PAD_REMOVED" in plain or "PAD_DELETED" in plain:
        running.inferencer.end_of_stream(int(pad[1]) if pad else 0)
    elif "MODEL" in plain or "UPDATE" in plain or "OTA" in plain:
        running.reload()
    else:
        raise UnknownShape(f"event {event!r}")


def _batch(things: Sequence[Thing]) -> Batch:
    """One buffer: a frame of each source."""
    pads = sorted({thing.pad for thing in things})
    number = things[0].frame
    batch = Batch.of([image(*FRAME, frame=number, source=pad) for pad in pads], buffer=number)
    for meta in batch.metas:
        _fill(meta, [thing for thing in things if thing.pad == meta.source_id])
    return batch


def _fill(meta: FrameMeta, things: Sequence[Thing]) -> None:
    put(
        meta,
        [thing.rect for thing in things],
        components=[thing.gie for thing in things],
        class_ids=[thing.cls for thing in things],
        object_ids=[thing.object_id for thing in things],
    )


def _placed(things: Sequence[Thing]) -> Iterator[tuple[tuple[int, int], Thing]]:
    """Each thing with its (source, object index), in the order of sources."""
    counts: dict[int, int] = {}
    for thing in sorted(things, key=lambda t: t.pad):
        index = counts.get(thing.pad, 0)
        counts[thing.pad] = index + 1
        yield (thing.pad, index), thing


def _labels(things: Sequence[Thing], batch: Batch, seen: Seen) -> None:
    metas = {meta.source_id: meta for meta in batch.metas}
    for (pad, index), thing in _placed(things):
        found = metas[pad].objects.classifiers.get(index, [])
        assert len(found) <= 1, "a classifier speaks once about an object"
        if found:
            seen.labelled.append(thing)
            seen.texts[thing.frame] = found[0].text


__all__ = ["secondary"]
