"""Frames as a table: one row for each, also for those without objects.

| column | type | is |
|---|---|---|
| `source` | string | name of the source |
| `source_id` | int32 | its number in the pipeline |
| `frame` | int64 | number of the frame within its source, from 0 |
| `pts_ns` | int64 | presentation time in nanoseconds |
| `wall_ns` | int64, null | when the frame was taken, in ns since 1970, UTC; null if nothing tells |
| `frame_width`, `frame_height` | int32 | size of the frame in pixels |
| `frame_rate` | float32, null | frames per second of the source; null of images, or if not known |
| `inferred` | bool | whether a model ran on it: `interval` leaves frames out |
| `objects` | int32 | rows that it has in the table of objects |

`source` and `frame` are the key of the rows of objects, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace._core.lazy import import_extra
from headrace.meta.arrow_arrays import arrow_array
from headrace.meta.frame_meta import FrameMeta
from headrace.meta.table import OF_FRAMES, schema_of

FRAME_COLUMNS: dict[str, str] = {
    **{name: kind for name, (kind, _) in OF_FRAMES.items()},
    "inferred": "bool",
    "objects": "int32",
}
"""Name -> type of every column."""

FRAME_SCHEMA_VERSION = 1
"""Version of the columns; a test holds it to them."""

FRAME_UNITS: dict[str, str] = {name: unit for name, (_, unit) in OF_FRAMES.items() if unit}
"""Name -> unit of the columns that have one."""


def frame_schema() -> Any:
    """The `pyarrow.Schema` of tables of frames; its metadata is as that of tables of objects.

    Raises:
        MissingExtraError: pyarrow is not installed.
    """
    nulls = ("wall_ns", "frame_rate")
    return schema_of(FRAME_COLUMNS, FRAME_UNITS, nulls, FRAME_SCHEMA_VERSION)


def frames_to_arrow(metas: Sequence[FrameMeta]) -> Any:
    """A `pyarrow.Table` with the schema `frame_schema()`, a row for each frame.

    Raises:
        MissingExtraError: pyarrow is not installed.
    """
    columns: dict[str, list[Any]] = {
        "source": [m.source for m in metas],
        "source_id": [m.source_id for m in metas],
        "frame": [m.frame for m in metas],
        "pts_ns": [m.pts_ns for m in metas],
        "wall_ns": [m.wall_ns for m in metas],
        "frame_width": [m.width for m in metas],
        "frame_height": [m.height for m in metas],
        "frame_rate": [m.fps for m in metas],
        "inferred": [m.inferred for m in metas],
        "objects": [len(m.objects) for m in metas],
    }
    schema = frame_schema()
    arrays = [arrow_array(values, schema.field(name).type) for name, values in columns.items()]
    return import_extra("pyarrow", "arrow").Table.from_arrays(arrays, schema=schema)
