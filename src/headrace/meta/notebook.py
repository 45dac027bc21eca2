"""Metadata as text for a console, as HTML for a notebook."""

from __future__ import annotations

from collections import Counter
from html import escape
from typing import TYPE_CHECKING

import numpy as np

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
    parts += [repr(found) for found in meta.segmentations]
    if meta.tensors:
        parts.append(f"{len(meta.tensors)} tensor outputs")
    return ", ".join(parts)


def frame_html(meta: FrameMeta) -> str:
    """A small HTML table of the objects of a frame, at most 30; all texts are escaped."""
    o = meta.objects
    head = "".join(f"<th>{name}</th>" for name in _COLUMNS)
    rows = []
    for i in range(min(len(o), _MAX_ROWS)):
        left, top, width, height = (f"{v:.1f}" for v in o.rects[i].tolist())
        text = " ".join(o.display_text(i).split()) or f"class {o.class_ids[i]}"
        tracked = int(o.object_ids[i])
        parent = int(o.parents[i])
        mask = o.masks[i].shape if o.masks is not None and o.masks[i].size else None
        has = [f"mask {mask[1]}x{mask[0]}"] if mask else []
        has += [repr(found) for found in o.segmentations.get(i, ())]
        has += [
            f"{info.label or info.value} {info.confidence:.2f}"
            for found in o.classifiers.get(i, ())
            for info in found.labels
        ]
        cells = (
            str(i),
            text,
            "" if tracked == UNTRACKED_OBJECT_ID else str(tracked),
            f"{o.confidences[i]:.2f}",
            left,
            top,
            width,
            height,
            "" if parent < 0 else str(parent),
            ", ".join(has),
        )
        rows.append("<tr>" + "".join(f"<td>{_safe(cell)}</td>" for cell in cells) + "</tr>")
    more = len(o) - len(rows)
    if more:
        rows.append(f'<tr><td></td><td colspan="{len(_COLUMNS) - 1}">and {more} more</td></tr>')
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    shares = "".join(f"<p>{_safe(_shares(found))}</p>" for found in meta.segmentations)
    return f"<p>{_safe(frame_line(meta))}</p>{table if rows else ''}{shares}"


def _shares(found: SegmentationMeta) -> str:
    """The classes of a class map with their share of the picture, the largest first."""
    left, top, width, height = found.region or (0, 0, found.width, found.height)
    seen = found.class_map[top : top + height, left : left + width]
    ids, counts = np.unique(seen, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    parts = [
        f"{found.labels[c] if 0 <= c < len(found.labels) else f'class {c}'} "
        f"{100 * counts[k] / seen.size:.0f} %"
        for k, c in zip(order.tolist(), ids[order].tolist(), strict=True)
        if c >= 0
    ]
    return ", ".join(parts[:12])


def _safe(text: str) -> str:
    return escape(text.encode(errors="replace").decode())
