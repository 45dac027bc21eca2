"""Decoding, drawing and writing, per frame of 768x432 video.

Decode: our source against a bare PyAV decode loop. Draw: ten labelled boxes on I420 against OpenCV
drawing on BGR. Encode: our sink against a bare PyAV encode loop with the same settings. JSON: our
lines against `json.dumps` of the same content.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable
from fractions import Fraction
from pathlib import Path

import av
import cv2
import numpy as np

from benchmarks.common import Row, compare, data_dir
from headrace.media import Frame, PixelFormat, open_sink, open_source
from headrace.media.draw import Painter
from headrace.media.draw.text import render_text
from headrace.media.pixels import to_rgb
from headrace.media.sinks.jsonl import LineWriter
from headrace.meta import ClassifierMeta, Detections, FrameMeta, LabelInfo, ObjectMeta, Space

THREADS, FRAMES = 2, 100
LABELS = ["car", "person", "truck", "bicycle"]


def rows() -> Iterable[Row]:
    with tempfile.TemporaryDirectory() as folder:
        clip = _clip(Path(folder))
        with open_source(str(clip), threads=THREADS) as source:
            frames = [frame for frame, _ in zip(source, range(FRAMES), strict=False)]
        yield _per_frame(
            compare(
                "decode; PyAV loop", lambda: _decode(clip), lambda: _bare_decode(clip), repeat=9
            )
        )
        metas = [_meta(frame, i) for i, frame in enumerate(frames)]
        bgr = [np.ascontiguousarray(to_rgb(f)[:, :, ::-1]) for f in frames]
        painter = Painter()
        yield _per_frame(
            compare(
                "draw 10 boxes with labels on I420; cv2 on BGR",
                lambda: [painter.draw(f, m) for f, m in zip(frames, metas, strict=True)],
                lambda: [_cv2_draw(p.copy(), m) for p, m in zip(bgr, metas, strict=True)],
                repeat=9,
            )
        )
        yield from _drawing()
        out = Path(folder)
        yield _per_frame(
            compare(
                "encode H.264; PyAV loop",
                lambda: _encode(frames, metas, out / "a.mp4"),
                lambda: _bare_encode(frames, out / "b.mp4"),
                repeat=3,
                warm_up=1,
            )
        )
        writer = LineWriter()
        yield _per_frame(
            compare(
                "JSON line of 10 objects; json.dumps",
                lambda: [writer.line(m) for m in metas],
                lambda: [_dumps(m) for m in metas],
            )
        )
        rich = [_tracked(frame, i) for i, frame in enumerate(frames)]
        yield _per_frame(
            compare(
                "JSON line of 10 tracked, classified objects; json.dumps",
                lambda: [writer.line(m) for m in rich],
                lambda: [_dumps(m) for m in rich],
            )
        )


def _drawing() -> Iterable[Row]:
    """Labelled boxes on 1080p BGR against OpenCV and, where it is installed, supervision.

    Texts change: every frame has scores of its own, and no text is kept from turn to turn.
    """
    rng = np.random.default_rng(0)
    image = rng.integers(0, 255, (1080, 1920, 3), np.uint8)
    frame, painter = Frame.from_array(image, PixelFormat.BGR), Painter()
    for count in (20, 200):
        boxes = rng.uniform((0, 20, 40, 30), (1720, 930, 200, 140), (count, 4)).astype(np.float32)
        classes = rng.integers(0, 4, count)
        for changing in (False, True):
            metas = []
            for _ in range(FRAMES if changing else 1):
                scores = rng.random(count, np.float32)
                metas.append(FrameMeta("", 0, 0, 0, 1920, 1080))
                found = Detections(boxes, scores, classes, space=Space.FRAME)
                metas[-1].objects.append(found, 1, labels=LABELS)
            metas *= FRAMES // len(metas)

            def ours(metas: list[FrameMeta] = metas) -> None:
                render_text.cache_clear()
                for meta in metas:
                    painter.draw(frame, meta)

            references: dict[str, Callable[[FrameMeta], object]] = {
                "cv2": lambda meta: _cv2_draw(image.copy(), meta)
            }
            if (annotated := _supervision(image)) is not None:
                references["supervision"] = annotated
            for name, draw in references.items():
                row = compare(
                    f"draw {count} boxes on 1080p, {'changing' if changing else 'constant'} "
                    f"texts; {name}",
                    ours,
                    lambda metas=metas, draw=draw: [draw(meta) for meta in metas],
                    repeat=5,
                    warm_up=1,
                )
                yield _per_frame(row)


def _supervision(image: np.ndarray) -> Callable[[FrameMeta], object] | None:
    try:
        import supervision as sv
    except ImportError:
        return None
    box, label = sv.BoxAnnotator(thickness=2), sv.LabelAnnotator(text_scale=0.5)

    def draw(meta: FrameMeta) -> object:
        objects = meta.objects
        corners = np.concatenate(
            [objects.rects[:, :2], objects.rects[:, :2] + objects.rects[:, 2:]], 1
        )
        found = sv.Detections(corners, confidence=objects.confidences, class_id=objects.class_ids)
        texts = [
            f"{LABELS[c]} {s:.2f}"
            for c, s in zip(found.class_id.tolist(), found.confidence.tolist(), strict=True)
        ]
        return label.annotate(box.annotate(image.copy(), found), found, texts)

    return draw


def _per_frame(row: Row) -> Row:
    return row._replace(ours_ms=row.ours_ms / FRAMES, reference_ms=row.reference_ms / FRAMES)


def _clip(folder: Path) -> Path:
    """The first frames of real traffic, or a made-up clip if there is none."""
    data = data_dir()
    clip = folder / "clip.mp4"
    if data is None:
        rng = np.random.default_rng(0)
        small = rng.integers(0, 255, (27, 48, 3), np.uint8)
        image = cv2.resize(small, (768 + FRAMES, 432), interpolation=cv2.INTER_CUBIC)
        made = [
            Frame.from_array(image[:, i : i + 768], PixelFormat.RGB, pts_ns=i * 80_000_000)
            for i in range(FRAMES)
        ]
        _encode(made, [_meta(f, i) for i, f in enumerate(made)], clip)
        return clip
    # Copied without encoding again, so both sides decode what a camera made.
    with (
        av.open(str(data / "videos" / "car-detection.mp4")) as source,
        av.open(str(clip), "w") as out,
    ):
        stream = out.add_stream_from_template(source.streams.video[0])
        for i, packet in enumerate(source.demux(video=0)):
            if i == FRAMES or packet.dts is None:
                break
            packet.stream = stream
            out.mux(packet)
    return clip


def _meta(frame: Frame, index: int) -> FrameMeta:
    rng = np.random.default_rng(index)
    boxes = rng.uniform((0, 20, 40, 30), (600, 330, 160, 100), (10, 4)).astype(np.float32)
    meta = FrameMeta(frame.source, 0, frame.frame, frame.pts_ns, frame.width, frame.height)
    found = Detections(boxes, rng.random(10, np.float32), rng.integers(0, 4, 10), space=Space.FRAME)
    meta.objects.append(found, 1, labels=LABELS)
    return meta


def _tracked(frame: Frame, index: int) -> FrameMeta:
    meta = _meta(frame, index)
    meta.objects.object_ids[:] = np.arange(1, 11)
    for i in range(10):
        found = (LabelInfo(0, 3, 0.75, "red"),)
        meta.objects.add_classifier(i, ClassifierMeta(2, found, "red ", "color"))
    return meta


def _decode(clip: Path) -> int:
    with open_source(str(clip), threads=THREADS) as source:
        return sum(frame.planes[0].shape[0] for frame in source)


def _bare_decode(clip: Path) -> int:
    with av.open(str(clip)) as container:
        stream = container.streams.video[0]
        stream.codec_context.thread_count, stream.thread_type = THREADS, "AUTO"
        return sum(image.height for image in container.decode(stream))


def _cv2_draw(image: np.ndarray, meta: FrameMeta) -> np.ndarray:
    for item in meta.objects:
        left, top = int(item.left), int(item.top)
        corner = (int(item.left + item.width), int(item.top + item.height))
        text = f"{item.label} {item.confidence:.2f}"
        (w, h), _ = cv2.getTextSize(text, cv2.FONT_HERSHEY_SIMPLEX, 0.4, 1)
        cv2.rectangle(image, (left, top), corner, (0, 0, 255), 2)
        cv2.rectangle(image, (left, top - h - 6), (left + w, top), (0, 0, 255), -1)
        cv2.putText(
            image, text, (left, top - 3), cv2.FONT_HERSHEY_SIMPLEX, 0.4, (255,) * 3, 1, cv2.LINE_AA
        )
    return image


def _encode(frames: list[Frame], metas: list[FrameMeta], path: Path) -> None:
    with open_sink(str(path), fps=12.5, threads=THREADS) as sink:
        for frame, meta in zip(frames, metas, strict=True):
            sink.write(frame, meta)


def _bare_encode(frames: list[Frame], path: Path) -> None:
    with av.open(str(path), "w") as out:
        stream = out.add_stream("libx264", rate=Fraction(25, 2))
        stream.width, stream.height, stream.pix_fmt = frames[0].width, frames[0].height, "yuv420p"
        stream.options = {"crf": "23", "preset": "veryfast"}
        stream.codec_context.thread_count, stream.codec_context.gop_size = THREADS, 25
        for i, frame in enumerate(frames):
            image = av.VideoFrame.from_ndarray(frame.owner.to_ndarray(), format="yuv420p")
            image.pts = i
            out.mux(stream.encode(image))
        out.mux(stream.encode(None))


def _more(item: ObjectMeta) -> dict[str, object]:
    """What a tracked, classified object has beyond the others."""
    if not item.classifiers:
        return {}
    return {
        "object_id": item.object_id,
        "text": item.display_text,
        "classifiers": [
            {
                "component_id": c.component_id,
                "type": c.classifier_type,
                "labels": [label._asdict() for label in c.labels],
            }
            for c in item.classifiers
        ],
    }


def _dumps(meta: FrameMeta) -> str:
    return json.dumps(
        {
            "source": meta.source,
            "frame": meta.frame,
            "pts_ns": meta.pts_ns,
            "width": meta.width,
            "height": meta.height,
            "objects": [
                {
                    "class_id": item.class_id,
                    "label": item.label,
                    "confidence": round(item.confidence, 6),
                    "left": round(item.left, 3),
                    "top": round(item.top, 3),
                    "width": round(item.width, 3),
                    "height": round(item.height, 3),
                }
                | _more(item)
                for item in meta.objects
            ],
        }
    )
