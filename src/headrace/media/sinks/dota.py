"""DOTA labels: the four corners of each object. The columns are in docs/formats.md."""

from __future__ import annotations

from headrace.media.sinks.kitti import KittiSink, one_word
from headrace.media.sinks.rows import finite_rows
from headrace.meta import FrameMeta
from headrace.meta.shapes import rotated_corners

_LINE = "%.2f " * 8 + "%s 0 %.6f\n"


def dota_text(meta: FrameMeta) -> tuple[str, int]:
    """Write the 11 columns of every object; count the objects that have to be left out.

    Corners are in frame pixels, clockwise, the first is the left upper one before the object is
    turned. Blanks in a label become underscores, an unnamed class is `class_N`.

    Args:
        meta: the frame.

    Returns:
        The lines, and the number of objects with a number that is not finite, which have none.
    """
    rows = finite_rows(meta)
    lines = []
    for key, index, (score, left, top, width, height) in zip(
        rows.keys, rows.indices, rows.values.tolist(), strict=True
    ):
        right, bottom = left + width, top + height
        upright = [(left, top), (right, top), (right, bottom), (left, bottom)]
        corners = rotated_corners(meta.objects, index) or upright
        flat = [value for corner in corners for value in corner]
        lines.append(_LINE % (*flat, one_word(meta, key, index), score))
    return "".join(lines), rows.lost


class DotaSink(KittiSink):
    """A folder of text files, named as those of `KittiSink`."""

    kind = "dota"

    def _text(self, meta: FrameMeta) -> tuple[str, int]:
        return dota_text(meta)
