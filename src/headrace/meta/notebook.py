"""Metadata as text for a console, as HTML for a notebook."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from headrace._core.html import paragraph, table
from headrace._core.text import counted
from headrace.meta.results import UNTRACKED_OBJECT_ID

if TYPE_CHECKING:
    from headrace.meta.frame_meta import FrameMeta
    from headrace.meta.objects import Objects
    from headrace.meta.results import SegmentationMeta

_MAX_CLASSES = 4
_MAX_ROWS = 30
_COLUMNS = ("", "text", "id", "confidence", "left", "top", "width", "height", "parent", "has")


def objects_line(objects: Objects) -> str:
    """Number of objects by class, and of those with further results."""
    n = len(objects)
    counts = Counter(objects.label(i) or f"class {objects.class_ids[i]}" for i in range(n))
    named = [f"{count} {name}" for name, count in counts.most_common(_MAX_CLASSES)]
    if len(counts) > _MAX_CLASSES:
        named.append(f"{n - sum(c for _, c in counts.most_common(_MAX_CLASSES))} others")
    extra = {
        "tracked": int((objects.object_ids != UNTRACKED_OBJECT_ID).sum()),
        "children": int((objects.parents >= 0).sum()),
        "masks": sum(bool(m.size) for m in objects.masks or ()),
        "classified": len(objects.classifiers),
        "segmented": len(objects.segmentations),
    }
    known = [f"{count} {name}" for name, count in extra.items() if count]
    parts = [", ".join(part) for part in (named, known) if part]
    return counted(n, "object") + (f": {'; '.join(parts)}" if n else "")


def frame_line(meta: FrameMeta) -> str:
    """A frame's metadata in one line."""
    parts = [
        f"frame {meta.frame} of {meta.source!r}",
        f"{meta.width}x{meta.height}",
        f"{meta.pts_ns / 1e9:.3f} s",
        objects_line(meta.objects) if meta.inferred or len(meta.objects) else "not inferred",
    ]
    parts += [repr(segmentation) for segmentation in meta.segmentations]
    if meta.tensors:
        parts.append(f"{len(meta.tensors)} tensor outputs")
    return ", ".join(parts)


def frame_html(meta: FrameMeta) -> str:
    """A small HTML table of the objects of a frame, at most 30; all texts are escaped."""
    parts = [paragraph(frame_line(meta)), table(_COLUMNS, _rows(meta.objects), most=_MAX_ROWS)]
    return "".join(
        [*parts, *(paragraph(_shares(segmentation)) for segmentation in meta.segmentations)]
    )


def _rows(o: Objects) -> Iterator[tuple[object, ...]]:
    for i, rect in enumerate(o.rects.tolist()):
        mask = o.masks[i].shape if o.masks is not None and o.masks[i].size else None
        has = [f"mask {mask[1]}x{mask[0]}"] if mask else []
        has += [repr(entry) for entry in o.segmentations.get(i, ())]
        has += [
            f"{info.label or info.value} {info.confidence:.2f}"
            for entry in o.classifiers.get(i, ())
            for info in entry.labels
        ]
        tracked, parent = int(o.object_ids[i]), int(o.parents[i])
        yield (
            i,
            " ".join(o.display_text(i).split()) or f"class {o.class_ids[i]}",
            "" if tracked == UNTRACKED_OBJECT_ID else tracked,
            f"{o.confidences[i]:.2f}",
            *(f"{v:.1f}" for v in rect),
            "" if parent < 0 else parent,
            ", ".join(has),
        )


def _shares(segmentation: SegmentationMeta) -> str:
    """The classes of a class map with their share of the image, the largest first."""
    left, top, width, height = segmentation.region or (
        0,
        0,
        segmentation.width,
        segmentation.height,
    )
    seen = segmentation.class_map[top : top + height, left : left + width]
    ids, counts = np.unique(seen, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    parts = [
        f"{segmentation.labels[c] if 0 <= c < len(segmentation.labels) else f'class {c}'} "
        f"{100 * counts[k] / seen.size:.0f} %"
        for k, c in zip(order.tolist(), ids[order].tolist(), strict=True)
        if c >= 0
    ]
    return ", ".join(parts[:12])
