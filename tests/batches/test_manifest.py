"""Tables of a batch as other programs read them: columns, types, and what made them."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

import headrace
from headrace._core.files import hash_file, sha256_of
from headrace.batches.folder import MANIFEST
from headrace.batches.inputs import columns_of, given_inputs
from headrace.batches.manifest import RESERVED, SCHEMA_VERSION, manifest_schema
from headrace.errors import MediaError
from headrace.meta.frame_table import (
    FRAME_COLUMNS,
    FRAME_SCHEMA_VERSION,
    FRAME_UNITS,
    frame_schema,
)
from headrace.meta.table import COLUMNS, arrow_schema
from tests.media.conftest import write_clip

_TYPES = {  # of documented types, in DuckDB and Polars
    "string": ("VARCHAR", "String"), "int32": ("INTEGER", "Int32"), "int64": ("BIGINT", "Int64"),
    "uint64": ("UBIGINT", "UInt64"), "float32": ("FLOAT", "Float32"),
    "bool": ("BOOLEAN", "Boolean"),
    "timestamp": ("TIMESTAMP WITH TIME ZONE", "Datetime(time_unit='us', time_zone='UTC')"),
    "list<string>": ("VARCHAR[]", "List(String)"), "list<float32>": ("FLOAT[]", "List(Float32)"),
}  # fmt: skip

_KINDS = ("int64", "timestamp[us, tz=UTC]", "string")


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
    Image.new("RGB", (640, 384)).save(folder / "empty.png")
    lane = pa.array([7, None, 9])
    begun = pa.array([datetime(2026, 5, 1, 8, tzinfo=UTC)] * 3, pa.timestamp("ms", "UTC"))
    names = [str(scene / "conveyor.mp4"), "broken.mp4", "empty.png"]
    places = pa.array([["hall", "2"], None, []])
    pq.write_table(
        pa.table({"input": names, "frame": lane, "begun": begun, "places": places}),
        folder / "given.parquet",
    )
    report = headrace.batch(
        scene / "config_infer_primary.txt",
        inputs=[folder / "given.parquet", good],
        out=out, workers=1, retries=3, limit=10,
    )  # fmt: skip
    assert (report.progress.done, report.progress.failed, report.progress.retried) == (3, 1, 0)
    assert any("the manifest's is 'given_frame'" in str(notice) for notice in report.notices)
    return out


GIVEN = {"given_frame": "int64", "begun": "timestamp", "places": "string"}
TABLES = [("objects", COLUMNS | GIVEN), ("frames", FRAME_COLUMNS | GIVEN)]
each = pytest.mark.parametrize(("folder", "columns"), TABLES)


@pytest.mark.slow
@each
@pytest.mark.sampled
def test_pyarrow_and_pandas(results: Path, folder: str, columns: dict[str, str]) -> None:
    ds, pandas = pytest.importorskip("pyarrow.dataset"), pytest.importorskip("pandas")
    table = ds.dataset(results / folder, partitioning="hive").to_table()
    assert table.column_names == [*columns, "run", "shard"]
    schema = arrow_schema() if folder == "objects" else frame_schema()
    assert table.schema.types[: len(schema)] == schema.types
    assert table.schema.field("begun").type == pa.timestamp("us", "UTC")
    frame = pandas.read_parquet(results / folder)
    assert list(frame.columns) == [*columns, "run", "shard"]
    assert set(frame["frame_width"]) == {640}
    assert set(frame["frame_height"]) == {384}
    clip = frame[frame["source"].str.endswith("conveyor.mp4")]
    assert set(clip["frame_rate"]) == {25.0}
    assert set(clip["given_frame"]) == {7}
    assert set(clip["places"]) == {'["hall", "2"]'}
    assert clip["begun"].iloc[0] == pandas.Timestamp("2026-05-01 08:00", tz="UTC")


@each
def test_polars(results: Path, folder: str, columns: dict[str, str]) -> None:
    polars = pytest.importorskip("polars")
    schema = polars.scan_parquet(f"{results}/{folder}/*/*/*.parquet").collect_schema()
    assert {name: str(schema[name]) for name in columns} == {
        name: _TYPES[kind][1] for name, kind in columns.items()
    }


@each
def test_duckdb(results: Path, folder: str, columns: dict[str, str]) -> None:
    duckdb = pytest.importorskip("duckdb")
    rows = duckdb.sql(f"DESCRIBE SELECT * FROM '{results}/{folder}/*/*/*.parquet'").fetchall()
    kinds = {name: kind for name, kind, *_ in rows}
    assert {name: kinds[name] for name in columns} == {
        name: _TYPES[kind][0] for name, kind in columns.items()
    }


def test_frames_without_objects_have_rows(results: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frames = pandas.read_parquet(results / "frames")
    objects = pandas.read_parquet(results / "objects")
    assert frames.groupby(frames["source"].map(lambda s: Path(s).name)).size().to_dict() == {
        "conveyor.mp4": 10, "empty.png": 1, "good.mp4": 6,
    }  # fmt: skip
    empty = frames[frames["source"].str.endswith("empty.png")].iloc[0]
    assert (empty["objects"], empty["inferred"], empty["given_frame"]) == (0, True, 9)
    assert pandas.isna(empty["frame_rate"])
    assert frames["objects"].sum() == len(objects)
    assert objects.groupby(["source", "frame"]).size().sum() == len(objects)


def test_the_manifest_has_the_columns_of_the_user(results: Path) -> None:
    rows = {Path(r["input"]).name: r for r in pq.read_table(results / MANIFEST).to_pylist()}
    assert {name: row["given_frame"] for name, row in rows.items()} == {
        "conveyor.mp4": 7, "broken.mp4": None, "empty.png": 9, "good.mp4": None,
    }  # fmt: skip
    assert rows["broken.mp4"]["begun"] == datetime(2026, 5, 1, 8, tzinfo=UTC)
    assert rows["good.mp4"]["begun"] is None


def test_small_results_are_in_few_files(results: Path) -> None:
    tables = list(results.glob("*/*/*/*.parquet"))
    assert len(tables) == 2
    assert not list((results / "waiting").rglob("*.table"))


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
    assert (SCHEMA_VERSION, sha256_of(text.encode())[:12]) == (2, "0d6bc4e9a8db")
    written = pq.read_schema(results / "manifest.parquet")
    assert written.metadata[b"headrace.schema"] == str(SCHEMA_VERSION).encode()
    assert written.equals(manifest_schema(tuple(zip(GIVEN, _KINDS, strict=True))))


def test_the_table_of_frames_has_a_version_for_its_columns() -> None:
    """Other columns need another `FRAME_SCHEMA_VERSION`; then the hash here follows."""
    text = ";".join(f"{n} {kind} {FRAME_UNITS.get(n, '')}" for n, kind in FRAME_COLUMNS.items())
    assert (FRAME_SCHEMA_VERSION, sha256_of(text.encode())[:12]) == (1, "6b0a2330f9f7")
    assert frame_schema().metadata[b"headrace.schema"] == str(FRAME_SCHEMA_VERSION).encode()


def documented(page: str, first: str) -> dict[str, str]:
    """Column -> type of a table of the pages whose first column is `first`."""
    text = (Path(__file__).parents[2] / "docs" / page).read_text()
    lines = text[text.index(f"\n| `{first}` |") + 1 :].split("\n\n")[0].splitlines()
    columns: dict[str, str] = {}
    for line in lines:
        names, kinds = (re.sub(", null$", "", c.strip()) for c in line.split("|")[1:3])
        found, kind = re.findall(r"`(\w+)`", names), kinds.split(", ")
        columns |= dict(zip(found, kind * (len(found) // len(kind)), strict=True))
    return columns


def test_the_pages_have_the_columns_and_types() -> None:
    kinds = {n: k.replace("list<", "list of ").rstrip(">") for n, k in COLUMNS.items()}
    assert documented("tables.md", "source") == kinds
    other = {"double": "float64", "list<item: string>": "list of string"}
    kinds = {f.name: other.get(str(f.type), str(f.type)) for f in manifest_schema()}
    assert documented("batch.md", "input") == kinds


def test_every_reader_reads_the_manifest_alike(results: Path) -> None:
    polars, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    pandas, path = pytest.importorskip("pandas"), results / MANIFEST
    rows = pq.read_table(path).column_names, pq.read_table(path)["frames"].to_pylist()
    for frame in (pandas.read_parquet(path), polars.read_parquet(path)):
        assert (list(frame.columns), frame["frames"].to_list()) == rows
    told = duckdb.sql(f"SELECT * FROM '{path}'")
    assert (told.columns, [row[told.columns.index("frames")] for row in told.fetchall()]) == rows


def test_manifests_that_do_not_agree_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("input,camera\nx.mp4,3\n")
    pq.write_table(pa.table({"input": ["y.mp4"], "camera": [3]}), tmp_path / "b.parquet")
    both = [str(tmp_path / "a.csv"), str(tmp_path / "b.parquet")]
    with pytest.raises(MediaError, match="'camera' is int64 here and string in"):
        columns_of(both)
    (tmp_path / "c.csv").write_text("input,frame,given_frame\nx.mp4,3,4\n")
    with pytest.raises(MediaError, match="'given_frame' is taken, too"):
        columns_of([str(tmp_path / "c.csv")], RESERVED)


def test_rows_carry_the_values_of_their_manifest(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("camera,input,run\nnorth,x.mp4,1\n,y.mp4,2\n")
    (tmp_path / "z.mp4").touch()
    names = [str(tmp_path / "a.csv"), str(tmp_path / "z.mp4")]
    columns, (renamed,) = columns_of(names, RESERVED)
    assert columns == (("camera", "string"), ("given_run", "string"))
    assert renamed.code == "column-renamed"
    given = {Path(one.name).name: one.values for one in given_inputs(names, columns)}
    assert given == {"x.mp4": ("north", "1"), "y.mp4": ("", "2"), "z.mp4": ()}
