"""Objects as tables: every column, in every form."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import headrace
from headrace._core.files import sha256_of
from headrace.errors import HeadraceError, MediaError, MissingExtraError
from headrace.meta import ClassifierMeta, Detections, FrameMeta, LabelInfo, Space
from headrace.meta.table import (
    COLUMNS,
    SCHEMA_VERSION,
    UNITS,
    arrow_schema,
    to_arrow,
    to_pandas,
    to_rows,
    write_parquet,
)


def meta_of(frame: int, count: int = 2, source: str = "cam") -> FrameMeta:
    meta = FrameMeta(source, 3, frame, frame * 40_000_000, 640, 480)
    boxes = np.arange(4 * count, dtype=np.float32).reshape(-1, 4) + frame
    found = Detections(boxes, np.full(count, 0.5), np.arange(count), space=Space.FRAME)  # type: ignore[arg-type]
    meta.objects.append(found, 1, labels=["car", "büs"])
    return meta


def rich_meta() -> FrameMeta:
    meta = meta_of(7)
    info = (LabelInfo(0, 1, 0.75, "red"), LabelInfo(1, 0, 0.5, ""))
    meta.objects.add_classifier(1, ClassifierMeta(2, info, "red "))
    meta.objects.object_ids[0] = 2**63 + 5
    meta.objects.parents[1] = 0
    return meta


def test_the_schema_has_a_version_for_its_columns() -> None:
    """Other columns need another `SCHEMA_VERSION`; then the hash here follows."""
    text = ";".join(f"{name} {kind} {UNITS.get(name, '')}" for name, kind in COLUMNS.items())
    assert (SCHEMA_VERSION, sha256_of(text.encode())[:12]) == (4, "c87d3bf310fe")
    metadata = arrow_schema().metadata
    assert metadata[b"headrace.schema"] == b"4"
    assert metadata[b"headrace.release"] == headrace.__version__.encode()


def test_rows_hold_every_column() -> None:
    first, second = to_rows([meta_of(1, 0), rich_meta()])
    assert list(first) == list(COLUMNS)
    assert first == {
        "source": "cam",
        "source_id": 3,
        "frame": 7,
        "pts_ns": 280_000_000,
        "object": 0,
        "parent": None,
        "component_id": 1,
        "class_id": 0,
        "label": "car",
        "confidence": 0.5,
        "left": 7.0,
        "top": 8.0,
        "width": 9.0,
        "height": 10.0,
        "object_id": 2**63 + 5,
        "text": "car",
        "classifier_labels": [],
        "classifier_confidences": [],
        "angle": 0.0,
        "keypoints": [],
        "regions": [],
        "crossed": [],
        "directions": [],
        "reid": [],
        "frame_width": 640,
        "frame_height": 480,
        "frame_rate": None,
        "wall_ns": None,
    }
    assert (second["parent"], second["object_id"]) == (0, None)
    assert second["text"] == "büs red"
    assert second["classifier_labels"] == ["red", ""]
    assert second["classifier_confidences"] == [0.75, 0.5]


def test_angles_and_keypoints() -> None:
    meta = meta_of(1)
    points = np.arange(6, dtype=np.float32).reshape(1, 2, 3)
    found = Detections([[1, 2, 3, 4]], [0.5], [0], None, [30], keypoints=points, space=Space.FRAME)
    meta.objects.append(found, 1)
    rows = to_rows(meta)
    assert [row["angle"] for row in rows] == [0, 0, 30]
    assert [row["keypoints"] for row in rows] == [[], [], [0, 1, 2, 3, 4, 5]]
    assert to_arrow(meta).to_pylist() == rows


def test_one_meta_is_enough() -> None:
    assert len(to_rows(rich_meta())) == len(to_pandas(rich_meta())) == 2
    assert to_arrow(rich_meta()).num_rows == 2


@pytest.mark.parametrize("metas", [[], [meta_of(1, 0)], [meta_of(1), meta_of(2, 0), rich_meta()]])
def test_all_forms_say_the_same(metas: list[FrameMeta]) -> None:
    rows = to_rows(metas)
    table = to_arrow(metas)
    assert table.schema == arrow_schema()
    assert table.to_pylist() == rows
    frame = to_pandas(metas)
    assert list(frame.columns) == list(COLUMNS)
    nulls = frame.astype(object).where(frame.notna(), None)
    assert nulls.to_dict("records") == rows
    kinds = {n: str(frame[n].dtype) for n in ("frame", "parent", "object_id", "left")}
    assert kinds == {"frame": "int64", "parent": "Int32", "object_id": "UInt64", "left": "float32"}


def test_parquet_comes_back(tmp_path: Path) -> None:
    metas = [meta_of(i, i % 3) for i in range(20)] + [rich_meta()]
    path = write_parquet(iter(metas), tmp_path / "objects.parquet")
    assert pq.read_table(path).to_pylist() == to_rows(metas)
    pandas = pytest.importorskip("pandas")
    assert pandas.read_parquet(path)["class_id"].tolist() == to_pandas(metas)["class_id"].tolist()
    assert [p.name for p in tmp_path.iterdir()] == ["objects.parquet"]


@pytest.mark.slow
def test_many_rows_are_written_as_they_come(tmp_path: Path) -> None:
    path = write_parquet((meta_of(i, 1000) for i in range(140)), tmp_path / "o.parquet")
    file = pq.ParquetFile(path)
    assert file.metadata.num_rows == 140_000
    assert file.metadata.num_row_groups == 3


def test_a_failure_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "o.parquet"
    write_parquet(rich_meta(), path)

    def broken() -> Any:
        yield meta_of(1)
        raise RuntimeError("source gone")

    with pytest.raises(RuntimeError, match="source gone"):
        write_parquet(broken(), path)
    assert pq.read_table(path).num_rows == 2
    assert [p.name for p in tmp_path.iterdir()] == ["o.parquet"]
    with pytest.raises(MediaError, match="cannot be written"):
        write_parquet(rich_meta(), tmp_path / "no" / "folder.parquet")


def test_odd_text_is_no_reason_to_fail(tmp_path: Path) -> None:
    meta = meta_of(1)
    meta.objects.labels[1] = ["\ud800x", "a\x00b"]
    write_parquet(meta, tmp_path / "o.parquet")
    assert [r["label"] for r in to_rows(meta)] == ["?x", "a\x00b"]


@pytest.mark.parametrize(
    ("package", "extra", "call"),
    [
        ("pandas", "pandas", to_pandas),
        ("pyarrow", "arrow", to_arrow),
        ("supervision", "supervision", FrameMeta.to_supervision),
    ],
)
def test_a_missing_package_is_named(
    package: str, extra: str, call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf"pip install '{package}>=[0-9.]+'") as caught:
        call(rich_meta())
    assert isinstance(caught.value, HeadraceError)
    assert isinstance(caught.value, ModuleNotFoundError)
