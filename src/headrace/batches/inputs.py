"""Inputs of a batch: folders, patterns, lists and manifests become the names of single files."""

from __future__ import annotations

import glob
import io
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any, NamedTuple

from headrace._core.errors import HeadraceError, MediaError
from headrace._core.files import os_reason
from headrace._core.findings import Finding
from headrace._core.lazy import import_extra
from headrace._core.near import did_you_mean
from headrace._core.text import quoted
from headrace._core.urls import url_name, url_scheme
from headrace.batches.columns import INPUT as _COLUMN
from headrace.batches.columns import RENAMED, Columns, joined_columns, plain_value, type_of
from headrace.batches.remote import fetched, is_remote_pattern, listed, remote_scheme
from headrace.batches.units import Value
from headrace.media.names import (
    IMAGE_SUFFIXES,
    VIDEO_SUFFIXES,
    is_media,
    matching_files,
    natural_key,
    nearest_file,
)

_ROWS = 65536
Row = dict[str, tuple[Any, str]]
"""Column of a manifest -> value and type."""

_MANIFESTS = (".csv", ".parquet")
_QUERY = re.compile(r"[?#]")
_RESULTS = frozenset(("run.json", "ledger.jsonl"))


class GivenInput(NamedTuple):
    """An input, and the values that its manifest has for the user's columns."""

    name: str
    values: tuple[Value, ...] = ()


def expand_inputs(names: Sequence[str]) -> Iterator[str]:
    """The names of the inputs that `given_inputs` has.

    Raises:
        MediaError, MissingExtraError: as there.
    """
    return (given.name for given in given_inputs(names))


def given_inputs(names: Sequence[str], columns: Columns = ()) -> Iterator[GivenInput]:
    """The single inputs behind the words of a command line, one after the other.

    Args:
        names: files; folders, with all that is below them; patterns; list files (`.txt`: a name on
            each line, `#` begins a comment); manifests (`.csv`, `.parquet`) with a column `input`;
            URLs of all these, of a folder with `/` at the end. Names in a list file or manifest
            are relative to its folder.
        columns: of manifests, whose values go with each input: see `columns_of`.

    Yields:
        Each input once, in order: the first of two names of the same path counts.

    Raises:
        MediaError: a file is not there, a folder or pattern has no video or image, a manifest
            cannot be read.
        MissingExtraError: a package that a kind of input needs is not installed.
    """
    seen: set[int] = set()
    for name in names:
        for location, row in _expanded(name):
            if url_scheme(location) is None:
                location = str(Path(location))  # without ./ and //: resumed runs know it again
            key = hash(_place(location))  # 8 bytes for each of many
            if key not in seen:
                seen.add(key)
                yield GivenInput(location, _values(row, columns))


def _values(row: Row, columns: Columns) -> tuple[Value, ...]:
    """The values of a manifest's row in the order of the columns; renamed ones are found."""
    if not row:
        return ()
    given = {name: plain_value(value, kind) for name, (value, kind) in row.items()}
    prefix = RENAMED.format("")
    return tuple(given.get(n, given.get(n.removeprefix(prefix))) for n, _ in columns)


def columns_of(
    names: Sequence[str], reserved: frozenset[str] = frozenset()
) -> tuple[Columns, list[Finding]]:
    """The columns that the manifests among `names` have beside `input`.

    Args:
        names: as `given_inputs` takes them; only the heads of manifests are read.
        reserved: names that the results have columns of their own for.

    Raises:
        MediaError: a manifest cannot be read; manifests do not agree.
    """
    given = []
    for name in names:
        kind = _kind(name)
        if kind in _MANIFESTS and (_is_remote(name) or Path(name).is_file()):
            with _read_errors(name):
                columns = _csv_columns if kind == ".csv" else _parquet_columns
                given.append((name, columns(name)))
    return joined_columns(given, reserved)


def _place(name: str) -> str:
    """The same text for a relative and an absolute name of a path; links are not followed."""
    if url_scheme(name) is not None:
        return name
    folder, file = os.path.split(name)
    if ".." in folder.split("/"):  # behind a link it is not the folder before
        return os.path.join(os.path.realpath(folder), file)
    return os.path.abspath(name)


def shown(name: str) -> str:
    """An input for ledgers, tables and messages: text, without credentials."""
    return os.fsencode(url_name(name)).decode(errors="replace")


def _bare(name: str) -> tuple[str, Row]:
    return name, {}


def _expanded(name: str) -> Iterator[tuple[str, Row]]:
    if not name:
        raise MediaError("the input is empty", expected="a file, folder, pattern, list or URL")
    if url_scheme(name) not in (None, "file"):
        remote_scheme(name)
        if _kind(name) in _MANIFESTS:
            yield from _manifest(name)
        else:
            yield from map(_bare, _lines(name) if _kind(name) == ".txt" else listed(name))
        return
    path = Path(name)
    suffix = path.suffix.lower()
    if path.is_dir():
        yield from map(_bare, _folder(path))
    elif path.exists() and suffix == ".txt":
        yield from map(_bare, _lines(name))
    elif path.exists() and suffix in _MANIFESTS:
        yield from _manifest(name)
    elif path.exists():
        yield _bare(name)
    elif glob.has_magic(name):
        yield from map(_bare, _pattern(name))
    else:
        fix = did_you_mean(nearest_file(path))
        raise MediaError("there is no such file", where=quoted(name), fix=fix)


def _folder(path: Path) -> Iterator[str]:
    has_media = False

    def refused(error: OSError) -> None:
        raise _unreadable(Path(error.filename), error)

    for folder, folders, files in os.walk(path, onerror=refused):
        if _RESULTS.issubset(files):  # the folder of a batch: its videos are no inputs
            folders.clear()
            continue
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        for file in sorted(files, key=lambda f: natural_key(Path(f))):
            if is_media(file) and not file.startswith("."):
                has_media = True
                yield os.path.join(folder, file)
    if not has_media:
        raise MediaError(
            "the folder has no video and no image",
            where=quoted(str(path)),
            expected="files of "
            + ", ".join(sorted(suffix[1:] for suffix in VIDEO_SUFFIXES | IMAGE_SUFFIXES)),
            fix="links to folders are not entered: name these themselves",
        )


def _pattern(pattern: str) -> Iterator[str]:
    matches = sorted(matching_files(pattern), key=lambda f: natural_key(Path(f)))
    if not matches:
        raise MediaError("the pattern matches no file", where=quoted(pattern))
    yield from matches


def _is_remote(name: str) -> bool:
    return url_scheme(name) not in (None, "file")


def _kind(name: str) -> str:
    """The ending of a file's name, `.csv`; empty for a pattern elsewhere."""
    if not _is_remote(name):
        return Path(name).suffix.lower()
    return "" if "*" in name else Path(_QUERY.split(name)[0]).suffix.lower()


@contextmanager
def _opened(name: str) -> Iterator[IO[bytes]]:
    """A list or manifest; one from elsewhere has no name here, and is gone when it is closed."""
    with ExitStack() as opened:
        with fetched(name) if _is_remote(name) else nullcontext((Path(name),)) as (path, *_):
            file = opened.enter_context(open(path, "rb"))
        yield file


def _beside(file: str, name: str) -> str:
    """A name from a file: URLs and absolute paths as they are, others from the file's folder."""
    if url_scheme(name) or os.path.isabs(name):
        return name
    if not _is_remote(file):
        return os.path.join(Path(file).parent, name)
    return f"{_QUERY.split(file)[0].rpartition('/')[0]}/{name.removeprefix('./')}"


def _lines(path: str) -> Iterator[str]:
    with _read_errors(path), _opened(path) as file:
        for line in io.TextIOWrapper(file, encoding="utf-8", errors="surrogateescape"):
            name = line.strip()
            if name and not name.startswith("#"):
                yield from _one(path, name)


def _one(path: str, name: str) -> Iterator[str]:
    """A line of a list: one file, which a worker opens; only patterns are looked up now.

    One that matches nothing fails as a unit, as a file does that is not there; one of a bucket ends
    the list, since the bucket may be unreachable.
    """
    name = _beside(path, name)
    if is_remote_pattern(name):
        yield from listed(name)
        return
    matches: list[str] = []
    if glob.has_magic(name) and not url_scheme(name) and not os.path.exists(name):
        matches = sorted(matching_files(name), key=lambda f: natural_key(Path(f)))
    yield from matches or [name]


def _manifest(path: str) -> Iterator[tuple[str, Row]]:
    with _read_errors(path):
        rows = _parquet(path) if _kind(path) == ".parquet" else _csv(path)
        for number, row in enumerate(rows, 1):
            name, _ = row.pop(_COLUMN)
            if not isinstance(name, str) or not name:
                raise MediaError(
                    f"row {number}: {quoted(repr(name))} is no input",
                    where=quoted(url_name(path)),
                    expected=f"a path or URL in every row of the column {_COLUMN!r}",
                )
            name = _beside(path, name)
            for one in listed(name) if is_remote_pattern(name) else (name,):
                yield one, row


@contextmanager
def _read_errors(path: str) -> Iterator[None]:
    """Give errors of reading a list or manifest the words of this program.

    Raises:
        MediaError: instead of an OSError, or an error of pyarrow.
    """
    try:
        yield
    except OSError as error:
        raise _unreadable(Path(path), error) from error
    except Exception as error:
        if _kind(path) != ".parquet" or isinstance(error, HeadraceError):
            raise
        raise MediaError(
            f"is no Parquet file that can be read: {error}", where=quoted(url_name(path))
        ) from None


@contextmanager
def _csv_reader(path: str) -> Iterator[Any]:
    import csv

    with _opened(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8-sig", errors="surrogateescape", newline="")
        reader = csv.DictReader(text)
        try:
            _require_column(path, reader.fieldnames or ())
            yield reader
        except csv.Error as error:
            where = f"{quoted(url_name(path))}:{reader.line_num + 1}"
            raise MediaError(f"is no CSV that can be read: {error}", where=where) from error


def _csv_columns(path: str) -> dict[str, str]:
    with _csv_reader(path) as reader:
        return {name: "string" for name in reader.fieldnames if name and name != _COLUMN}


def _csv(path: str) -> Iterator[Row]:
    with _csv_reader(path) as reader:
        for row in reader:
            yield {name: (value, "string") for name, value in row.items() if name}


def _parquet_columns(path: str) -> dict[str, str]:
    pq = import_extra("pyarrow.parquet", "arrow")
    with _opened(path) as content, pq.ParquetFile(content) as file:
        return _types(path, file.schema_arrow)


def _types(path: str, schema: Any) -> dict[str, str]:
    _require_column(path, schema.names)
    return {field.name: type_of(field.type) for field in schema if field.name != _COLUMN}


def _parquet(path: str) -> Iterator[Row]:
    pq = import_extra("pyarrow.parquet", "arrow")
    with _opened(path) as content, pq.ParquetFile(content) as file:
        kinds = _types(path, file.schema_arrow) | {_COLUMN: "string"}
        for batch in file.iter_batches(_ROWS):
            for row in batch.to_pylist():
                yield {name: (value, kinds[name]) for name, value in row.items()}


def _require_column(path: str, names: Sequence[str]) -> None:
    if _COLUMN not in names:
        raise MediaError(
            f"there is no column {_COLUMN!r}",
            where=url_name(path),
            expected=f"a column {_COLUMN!r} with paths or URLs; "
            f"there are {', '.join(names) or 'none'}",
        )


def _unreadable(path: Path, error: OSError) -> MediaError:
    return MediaError(f"cannot be read: {os_reason(error)}", where=quoted(str(path)))
