"""Identity of a batch: hashes of its configs, models, libraries and options."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import headrace
from headrace._core.errors import HeadraceError
from headrace._core.files import hash_file, os_reason, sha256_of, write_atomically
from headrace._core.urls import url_name
from headrace.batches.columns import described
from headrace.batches.work import Work
from headrace.config import ModelConfig

_SCHEMA = 2
COLUMNS_PART = "columns of the manifest"
"""The part of an identity that has the user's columns."""

_NOT_READ = frozenset(("model_engine_file",))  # a cache: whether it is there changes no result
_LATER, _EARLIER = "counts now, and did not in the earlier run", "counted in the earlier run alone"
_HASH = re.compile(r"[0-9a-f]{64}")


def identity_of(work: Work, configs: Sequence[ModelConfig]) -> dict[str, str]:
    """Name -> hash or value of everything that the results depend on.

    Names of files stand without their folders: a batch that moved to another machine goes on.
    """
    parts: dict[str, str] = {"headrace": headrace.__version__, "outputs": ", ".join(work.kinds)}
    options = ["profile", "generation", "abi", "limit"] + ["palette"] * ("video" in work.kinds)
    for option in options:
        value = getattr(work.options, option)
        parts[f"option {option}"] = "" if value is None else str(value)
    if work.columns:
        parts[COLUMNS_PART] = described(work.columns)
    if work.spec.tracker is not None:
        parts["tracker"] = _text_hash(repr(work.spec.tracker.text), work.spec.tracker.config)
    for number, (model, cfg) in enumerate(zip(work.spec.models, configs, strict=True), 1):
        values = {n: v for n, v in model.overrides.items() if not isinstance(v, Path)}
        overrides = repr([sorted(values.items()), model._given])
        parts[f"config {number}: {cfg.path.name}"] = _text_hash("", cfg.path)
        parts[f"keys set over config {number}"] = _text_hash(overrides, None)
        for field, path in config_files(cfg).items():
            parts[f"{field.replace('_', '-')} {number}: {path.name}"] = hash_file(path).sha256
    return parts


def config_files(cfg: ModelConfig) -> dict[str, Path]:
    """Field -> file, of every file that a config names and that is there."""
    files = {
        field: value
        for field, value in cfg.values().items()
        if isinstance(value, Path) and field not in _NOT_READ and value.is_file()
    }
    onnx = files.get("onnx_file")
    if onnx is not None:
        for index, data in enumerate(sorted(onnx.parent.glob(f"{onnx.name}*data"))):
            files[f"onnx_file_data_{index}"] = data
    return files


def _text_hash(text: str, path: Path | None) -> str:
    content = path.read_bytes() if path is not None and path.is_file() else b""
    return sha256_of(text.encode("utf-8", "replace") + b"\0" + content)


def run_id(parts: Mapping[str, str]) -> str:
    """The name of a run: 12 hexadecimal digits."""
    text = json.dumps(dict(parts), sort_keys=True)
    return sha256_of(text.encode())[:12]


def check_run(
    path: Path, parts: Mapping[str, str], *, resume: bool, shown: str | Path | None = None
) -> None:
    """Refuse to mix results: the folder has to be new, or of the same run and `--resume` given.

    Args:
        path: the folder of the batch.
        parts: see `identity_of`.
        resume: whether the user asks to go on.
        shown: name of the folder in messages; None is the path.

    Raises:
        HeadraceError: the folder has results and `resume` is False; or they were made otherwise,
            and the error names each difference.
    """
    file = path / "run.json"
    if not file.exists():
        return
    before = read_run(path, shown)["parts"]
    where = url_name(str(path if shown is None else shown))
    if not resume:
        raise HeadraceError(
            "the folder has results of an earlier run",
            where=where,
            fix=["--resume does what is missing there", "or choose another folder"],
        )
    changed = differences(before, parts)
    if changed:
        raise HeadraceError(
            f"its results were made otherwise: {'; '.join(changed)}",
            where=where,
            expected="the same config, models, libraries and options",
            fix="choose another folder for the new results",
        )


def differences(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Each difference of two identities in words."""
    changes = []
    for name in sorted({*before, *now}):
        old, new = before.get(name), now.get(name)
        if old == new:
            continue
        if old is None or new is None:
            changes.append(f"{name} {_LATER if old is None else _EARLIER}")
        elif _HASH.fullmatch(old) and _HASH.fullmatch(new):
            changes.append(f"{name} has changed")
        else:
            values = f"{old or 'not set'} in the earlier run, {new or 'not set'} now"
            changes.append(f"{name}: {values}")
    return changes


def write_run(path: Path, parts: Mapping[str, str]) -> None:
    """Write `run.json`, whole or not at all.

    Raises:
        OSError: it cannot be written.
    """
    data = {"schema": _SCHEMA, "run": run_id(parts), "parts": dict(parts)}
    write_atomically(path / "run.json", [json.dumps(data, indent=2).encode()])


def read_run(path: Path, shown: str | Path | None = None) -> dict[str, Any]:
    """The content of `run.json`.

    Args:
        path: the folder.
        shown: its name in messages; None is the path.

    Raises:
        HeadraceError: the folder has none, or it is damaged.
    """
    file = path / "run.json"
    where = url_name(str(path if shown is None else shown))
    try:
        data = json.loads(file.read_bytes())
        if data["schema"] == _SCHEMA and isinstance(data["run"], str):
            dict(data["parts"])
            return dict(data)
    except FileNotFoundError as error:
        raise HeadraceError(
            "there is no batch in this folder",
            where=where,
            expected="a folder that headrace batch -o wrote",
        ) from error
    except OSError as error:
        raise HeadraceError(
            f"cannot be read: {os_reason(error)}", where=f"{where}/run.json"
        ) from error
    except (ValueError, TypeError, KeyError, RecursionError):
        pass
    raise HeadraceError("is damaged, or of another release", where=f"{where}/run.json")
