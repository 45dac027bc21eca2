"""Objects of many frames as one table: rows, pandas, Arrow, Parquet.

Each function takes the metadata of one frame or of any number, read once; pairs of a frame and its
metadata are taken too, so a `Pipeline` is.

One row for each object, in the order of the frames and of attachment; frames without objects give
no rows. The columns, always all of them and in this order:

| column | type | is |
|---|---|---|
| `source` | string | name of the source |
| `source_id` | int32 | its number in the pipeline |
| `frame` | int64 | number of the frame within its source, from 0 |
| `pts_ns` | int64 | presentation time in nanoseconds |
| `object` | int32 | index of the object in its frame |
| `parent` | int32, null | index of the object in whose crop it was found |
| `component_id` | int32 | `gie-unique-id` of the model that made it |
| `class_id` | int32 | class; -1 for the full-frame object of a primary classifier |
| `label` | string | name of the class, empty if it has none |
| `confidence` | float32 | |
| `left`, `top`, `width`, `height` | float32 | rectangle in frame pixels |
| `object_id` | uint64, null | tracking id, null if not tracked |
| `text` | string | display text: the label and what classifiers added, blanks trimmed |
| `classifier_labels` | list of string | label of each attribute that classifiers found, in order |
| `classifier_confidences` | list of float32 | their probabilities |
| `angle` | float32 | rotation of the rectangle about its middle, in degrees clockwise |
| `keypoints` | list of float32 | x, y in frame pixels and score of each point, empty without |
| `regions` | list of string | regions of the analytics rules that it stands in |
| `crossed` | list of string | lines that it crossed since the frame before |
| `directions` | list of string | directions in which it moves |
| `reid` | list of float32 | vector of a ReID model, empty without |
| `frame_width`, `frame_height` | int32 | size of the frame in pixels |
| `frame_rate` | float32, null | frames per second of the source; null of images, or if not known |
| `wall_ns` | int64, null | when the frame was taken, in ns since 1970, UTC; null if nothing tells |

The metadata of the schema holds `headrace.schema`, the version of these columns, and
`headrace.release`. A column that is added, renamed, or of another type makes a new version.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

import headrace
from headrace._core.errors import MediaError
from headrace._core.files import PartFile, os_reason
from headrace._core.lazy import import_extra
from headrace.meta.arrow_arrays import arrow_array
from headrace.meta.fields import FIELDS, Column
from headrace.meta.frame_meta import FrameMeta

_OF_OBJECTS = sorted((c for row in FIELDS for c in row.columns), key=lambda column: column.at)
OF_FRAMES: dict[str, tuple[str, str]] = {
    "source": ("string", ""),
    "source_id": ("int32", ""),
    "frame": ("int64", ""),
    "pts_ns": ("int64", "ns"),
    "wall_ns": ("int64", "ns"),
    "frame_width": ("int32", "px"),
    "frame_height": ("int32", "px"),
    "frame_rate": ("float32", "1/s"),
}
"""Name -> type and unit, empty without, of the columns that tables of frames have, too."""

COLUMNS: dict[str, str] = {
    **{name: OF_FRAMES[name][0] for name in ("source", "source_id", "frame", "pts_ns")},
    "object": "int32",
    **{column.name: column.type for column in _OF_OBJECTS},
    **{
        name: OF_FRAMES[name][0]
        for name in ("frame_width", "frame_height", "frame_rate", "wall_ns")
    },
}
"""Name -> type of every column."""

SCHEMA_VERSION = 4
"""Version of the columns; a test holds it to them."""

UNITS: dict[str, str] = {
    **{name: unit for name, (_, unit) in OF_FRAMES.items() if unit},
    **{c.name: c.unit for c in _OF_OBJECTS if c.unit},
}
"""Name -> unit of the columns that have one; `1` is a share from 0 to 1."""

Metas = FrameMeta | Iterable[FrameMeta] | Iterable[tuple[Any, FrameMeta]]

_NULLABLE = {"int32": "Int32", "int64": "Int64", "uint64": "UInt64", "float32": "Float32"}
_MAY_BE_NULL = {column.name for column in _OF_OBJECTS if column.null} | {"frame_rate", "wall_ns"}
_NULLS = {name: _NULLABLE[kind] for name, kind in COLUMNS.items() if name in _MAY_BE_NULL}
_NUMBERS = ("int32", "float32")
_ROWS_PER_GROUP = 65536


def to_rows(metas: Metas) -> list[dict[str, Any]]:
    """One dict of plain Python values for each object; null is None. See the module for columns."""
    columns = {name: _plain(values) for name, values in _columns(metas).items()}
    names = tuple(columns)
    return [dict(zip(names, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def to_pandas(metas: Metas) -> Any:
    """A `pandas.DataFrame`; columns that may be null are of pandas' nullable types.

    Raises:
        MissingExtraError: pandas is not installed.
    """
    pandas = import_extra("pandas", "pandas")
    columns: dict[str, Any] = _columns(metas)
    for name, values in columns.items():
        if name in _NULLS:
            columns[name] = pandas.array(values, dtype=_NULLS[name])
        elif COLUMNS[name].startswith("list"):
            columns[name] = pandas.Series(values, dtype=object)
        elif COLUMNS[name] == "string":
            columns[name] = pandas.Series(values, dtype=str)
    return pandas.DataFrame(columns)


def arrow_schema() -> Any:
    """The `pyarrow.Schema` of every table made here; the metadata of its fields has the `unit`.

    Its own metadata has `headrace.schema`, the version of the columns, and `headrace.release`.

    Raises:
        MissingExtraError: pyarrow is not installed.
    """
    return schema_of(COLUMNS, UNITS, _NULLS, SCHEMA_VERSION)


def schema_of(
    columns: Mapping[str, str], units: Mapping[str, str], nulls: Container[str], version: int
) -> Any:
    """A `pyarrow.Schema`.

    Args:
        columns: name -> type, as Arrow writes it.
        units: name -> unit of those that have one.
        nulls: names of those that may be null.
        version: of the columns.

    Raises:
        MissingExtraError: pyarrow is not installed.
    """
    pa = import_extra("pyarrow", "arrow")
    types: dict[str, Callable[[], Any]] = {
        "string": pa.string,
        "bool": pa.bool_,
        "int32": pa.int32,
        "int64": pa.int64,
        "uint64": pa.uint64,
        "float32": pa.float32,
        "list<string>": lambda: pa.list_(pa.string()),
        "list<float32>": lambda: pa.list_(pa.float32()),
    }
    fields = [
        pa.field(
            name,
            types[kind](),
            nullable=name in nulls,
            metadata={"unit": units[name]} if name in units else None,
        )
        for name, kind in columns.items()
    ]
    return pa.schema(
        fields, {"headrace.schema": str(version), "headrace.release": headrace.__version__}
    )


def to_arrow(metas: Metas) -> Any:
    """A `pyarrow.Table` with the schema `arrow_schema()`.

    Raises:
        MissingExtraError: pyarrow is not installed.
    """
    pa = import_extra("pyarrow", "arrow")
    schema = arrow_schema()
    arrays = [
        arrow_array(values, schema.field(name).type) for name, values in _columns(metas).items()
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def write_parquet(metas: Metas, path: str | Path) -> Path:
    """Write a Parquet file (zstd), as `metas` come: memory stays flat for any number of frames.

    A file that cannot be finished is removed; one that stood there is kept until then.

    Returns:
        `path`.

    Raises:
        MissingExtraError: pyarrow is not installed.
        MediaError: the file cannot be written.
    """
    pq = import_extra("pyarrow.parquet", "arrow")
    path = Path(path)
    try:
        with (
            PartFile(path) as part,
            pq.ParquetWriter(part, arrow_schema(), compression="zstd") as writer,
        ):
            waiting: list[FrameMeta] = []
            rows = 0
            for meta in _each(metas):
                waiting.append(meta)
                rows += len(meta.objects)
                if rows >= _ROWS_PER_GROUP:
                    writer.write_table(to_arrow(waiting))
                    waiting, rows = [], 0
            writer.write_table(to_arrow(waiting))
    except OSError as error:
        reason = os_reason(error)
        raise MediaError(f"the table cannot be written: {reason}", where=str(path)) from error
    return path


def _each(metas: Metas) -> Iterable[FrameMeta]:
    if isinstance(metas, FrameMeta):
        return (metas,)
    return (item[1] if isinstance(item, tuple) else item for item in metas)


def _plain(values: Any) -> list[Any]:
    plain: list[object] = values.tolist() if isinstance(values, np.ndarray) else list(values)
    return plain


def _columns(metas: Metas) -> dict[str, Any]:
    """Name -> array or list, all of one length."""
    full = [m for m in _each(metas) if len(m.objects)]
    counts = [len(m.objects) for m in full]

    def of_frame(values: Iterable[int], dtype: type[np.generic]) -> Any:
        return np.repeat(np.array(list(values), dtype), counts)

    return {
        "source": [m.source for m, n in zip(full, counts, strict=True) for _ in range(n)],
        "source_id": of_frame((m.source_id for m in full), np.int32),
        "frame": of_frame((m.frame for m in full), np.int64),
        "pts_ns": of_frame((m.pts_ns for m in full), np.int64),
        "object": np.fromiter(chain.from_iterable(map(range, counts)), np.int32),
        **{column.name: _joined(column, full) for column in _OF_OBJECTS},
        "frame_width": of_frame((m.width for m in full), np.int32),
        "frame_height": of_frame((m.height for m in full), np.int32),
        "frame_rate": [m.fps for m, n in zip(full, counts, strict=True) for _ in range(n)],
        "wall_ns": [m.wall_ns for m, n in zip(full, counts, strict=True) for _ in range(n)],
    }


def _joined(column: Column, metas: Sequence[FrameMeta]) -> Any:
    """The values of a column of objects: an array of numbers, or a list."""
    parts = [column.values(meta.objects) for meta in metas]
    if column.null or column.type not in _NUMBERS:
        return list(chain.from_iterable(parts))
    return np.concatenate([np.empty(0, column.type), *parts], dtype=column.type)
