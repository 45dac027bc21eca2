"""Tables of a batch as other programs read them: columns, types, and what made them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import headrace
from headrace._core.files import hash_file, sha256_of
from headrace.batches.manifest import SCHEMA_VERSION, manifest_schema
from headrace.meta.table import COLUMNS, arrow_schema
from tests.media.conftest import write_clip

_TYPES = {  # of documented types, in DuckDB and Polars
    "string": ("VARCHAR", "String"), "int32": ("INTEGER", "Int32"), "int64": ("BIGINT", "Int64"),
    "uint64": ("UBIGINT", "UInt64"), "float32": ("FLOAT", "Float32"),
    "list<string>": ("VARCHAR[]", "List(String)"), "list<float32>": ("FLOAT[]", "List(Float32)"),
}  # fmt: skip


@pytest.fixture(scope="module")
def scene() -> Path:
    return Path(__file__).parents[2] / "examples" / "conveyor"


@pytest.fixture(scope="module")
def results(scene: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A batch over two videos, of which one is broken."""
    folder = tmp_path_factory.mktemp("contract")
    good = write_clip(folder / "good.mp4", 6, size=(640, 384))
    (folder / "broken.mp4").write_bytes(good.read_bytes()[:500])
    out = folder / "out"
    names = [str(scene / "conveyor.mp4"), str(folder / "broken.mp4")]
    report = headrace.batch(
        scene / "config_infer_primary.txt", inputs=names, out=out, workers=1, retries=3, limit=10
    )
    assert (report.progress.done, report.progress.failed, report.progress.retried) == (1, 1, 0)
    return out


def _objects(results: Path) -> str:
    return f"{results}/objects/*/*/*.parquet"


def test_pyarrow_and_pandas(results: Path) -> None:
    table = ds.dataset(results / "objects", partitioning="hive").to_table()
    assert table.column_names[: len(COLUMNS)] == list(COLUMNS)
    assert [table.schema.field(name).type for name in COLUMNS] == arrow_schema().types
    frame = pandas.read_parquet(results / "objects")
    assert list(frame.columns)[: len(COLUMNS)] == list(COLUMNS)
    assert set(frame["frame_width"]) == {640}
    assert set(frame["frame_height"]) == {384}


def test_polars(results: Path) -> None:
    polars = pytest.importorskip("polars")
    schema = polars.scan_parquet(_objects(results)).collect_schema()
    assert {name: str(schema[name]) for name in COLUMNS} == {
        name: _TYPES[kind][1] for name, kind in COLUMNS.items()
    }


def test_duckdb(results: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    rows = duckdb.sql(f"DESCRIBE SELECT * FROM '{_objects(results)}'").fetchall()
    kinds = {name: kind for name, kind, *_ in rows}
    assert {name: kinds[name] for name in COLUMNS} == {
        name: _TYPES[kind][0] for name, kind in COLUMNS.items()
    }


def test_the_metadata_says_what_made_a_table(results: Path, scene: Path) -> None:
    (path,) = results.glob("objects/*/*/*.parquet")
    metadata = {k.decode(): v.decode() for k, v in pq.read_schema(path).metadata.items()}
    assert metadata["headrace.release"] == headrace.__version__
    assert path.parts[-3] == f"run={metadata['headrace.run']}"
    parts: dict[str, Any] = json.loads(metadata["headrace.made-of"])
    assert parts == json.loads((results / "run.json").read_text())["parts"]
    model = hash_file(scene / "detector.onnx").sha256
    assert parts["onnx-file 1: detector.onnx"] == model
    library = hash_file(scene / "conveyor_parser.py").sha256
    assert library in parts.values()


def test_the_manifest_has_a_version_for_its_columns(results: Path) -> None:
    """Other columns need another `SCHEMA_VERSION`; then the hash here follows."""
    schema = manifest_schema()
    text = ";".join(f"{field.name} {field.type}" for field in schema)
    assert (SCHEMA_VERSION, sha256_of(text.encode())[:12]) == (1, "4515ebbd5499")
    written = pq.read_schema(results / "manifest.parquet")
    assert written.metadata[b"headrace.schema"] == str(SCHEMA_VERSION).encode()
    assert written.equals(schema)
