"""The inputs of a call that ended a worker, kept so that it can be repeated."""

from __future__ import annotations

import json
import os
import platform
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from math import prod
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from noria.custom.guard.cases import (
    Params,
    ParserKind,
    network_from,
    network_json,
    params_from,
    params_json,
)
from noria.custom.guard.errors import LibraryDied
from noria.custom.guard.options import GuardOptions, crash_folder
from noria.custom.guard.regular import open_regular
from noria.errors import CustomLibraryError
from noria.meta import Layer, NetworkInfo

__all__ = ["Case", "load_case", "save_case"]

KEPT = 20  # folders
MAX_BYTES = 1 << 29
MAX_CASE = 16 << 20  # bytes of `case.json`: labels and thresholds of many classes
_LIMITS = GuardOptions()
_KINDS: tuple[ParserKind, ...] = ("bbox", "instance", "classifier", "segmentation")
_DAMAGE = (OSError, ValueError, TypeError, KeyError, AttributeError, EOFError, RecursionError,
           OverflowError, MemoryError)  # fmt: skip
_KIND_OF_JSON = {list: "a list", str: "text", int: "a number", float: "a number",
                 bool: "a boolean", type(None): "null"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Case:
    """One call of a parser, without its tensors.

    Attributes:
        library: the file, and the hash it had.
        kind: of parser; `name` is the function.
        abi, rotation: as `open_library` takes them.
        timeout_s, memory_mib: limits that the call had, see `GuardOptions`.
    """

    library: Path
    sha256: str
    kind: ParserKind
    name: str
    abi: str
    rotation: bool | None
    network: NetworkInfo
    params: Params
    timeout_s: float = _LIMITS.timeout_s
    memory_mib: int = _LIMITS.memory_mib


def save_case(
    case: Case, layers: Mapping[str, Layer], error: LibraryDied, folder: Path | None
) -> Path | str:
    """Write `case.json`, `report.txt` and one `.npy` a layer into a new folder; or why not.

    Only the newest `KEPT` folders stay. Afterwards `error.in_frame` completes `case.json`.
    """
    size = sum(layer.data.nbytes for layer in layers.values())
    if size > MAX_BYTES:
        return f"they have {size >> 20} MiB"
    folder = folder or crash_folder()
    now = datetime.now(UTC)
    name = f"{now:%Y%m%d-%H%M%S.%f}-{case.library.stem}-{case.name}"
    target = folder / "".join(c if c.isalnum() or c in "-_." else "_" for c in name)
    described: dict[str, Any] = {
        "noria-case": 1,
        "library": str(case.library),
        "sha256": case.sha256,
        "kind": case.kind,
        "function": case.name,
        "abi": case.abi,
        "rotation": case.rotation,
        "network": network_json(case.network),
        "params": params_json(case.params),
        "timeout": case.timeout_s,
        "memory": case.memory_mib,
        "layers": [{"name": name, "file": f"layer_{i}.npy"} for i, name in enumerate(layers)],
        "found": _found(error),
        "when": now.isoformat(timespec="seconds"),
        "machine": f"{platform.system()} {platform.machine()}",
    }
    try:
        target.mkdir(parents=True)
        for i, layer in enumerate(layers.values()):
            np.save(target / f"layer_{i}.npy", layer.data, allow_pickle=False)
        _write(target, described)
        (target / "report.txt").write_text(_text(case, error))
    except OSError as problem:
        with suppress(OSError):
            shutil.rmtree(target)
        return f"{target}: {problem.strerror or problem}"
    _forget_old(folder)
    if error.death is not None:

        def on_frame(source: object, frame: int) -> None:
            with suppress(OSError):
                _write(target, {**described, "source": str(source), "frame": frame})

        error.death.on_frame = on_frame
    return target


def load_case(folder: Path) -> tuple[Case, dict[str, Layer], dict[str, Any]]:
    """The call, its tensors, and all that `case.json` says.

    Raises:
        CustomLibraryError: the folder holds no such case, or it is damaged.
    """
    file = folder / "case.json"
    said: dict[str, Any] = {}
    try:
        with open_regular(file, MAX_CASE) as opened:
            said = json.loads(opened.read(MAX_CASE + 1))
        if not isinstance(said, dict):
            raise ValueError(f"the JSON in it is {_KIND_OF_JSON[type(said)]}, not an object")
        if said.get("noria-case") != 1 or said.get("kind") not in _KINDS:
            raise ValueError("it is no case of this version")
        kind = cast(ParserKind, said["kind"])
        case = Case(
            Path(said["library"]),
            said["sha256"],
            kind,
            said["function"],
            said["abi"],
            said["rotation"],
            network_from(said["network"]),
            params_from(kind, said["params"]),
            _number(said.get("timeout", _LIMITS.timeout_s)),
            int(_number(said.get("memory", _LIMITS.memory_mib))),
        )
        named = [(str(entry["name"]), Path(entry["file"]).name) for entry in said["layers"]]
    except _DAMAGE as error:
        raise _no_case(file, error) from error
    layers: dict[str, Layer] = {}
    for name, place in named:
        try:
            layers[name] = Layer(name, _tensor(folder / place))
        except _DAMAGE as error:
            raise _no_case(folder / place, error) from error
    return case, layers, said


def _no_case(file: Path, error: Exception) -> CustomLibraryError:
    found = str(error)
    if isinstance(error, OSError):
        found = error.strerror or found
    elif isinstance(error, RecursionError):
        found = "its JSON is nested too deeply"
    elif isinstance(error, KeyError):
        found = f"{error} is absent"
    return CustomLibraryError(
        f"there is no saved call to replay: {found}",
        where=str(file),
        expected="a folder that a message of a guarded library named, as it was written",
        fix="run the model again: the call is saved again when it fails",
    )


def _tensor(file: Path) -> npt.NDArray[Any]:
    """The array of a `.npy`.

    Raises:
        ValueError: it is none, or the file has another size than its header says.
        OSError: it cannot be read.
    """
    with open_regular(file, MAX_BYTES + 4096) as opened:
        readers = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }
        version = np.lib.format.read_magic(opened)
        if version not in readers:
            raise ValueError(f"it is a .npy of version {version}")
        shape, _, dtype = readers[version](opened)
        if dtype.hasobject:
            raise ValueError("it has Python objects, not numbers")
        wanted = opened.tell() + prod(shape) * dtype.itemsize
        size = os.fstat(opened.fileno()).st_size
        if size != wanted:
            raise ValueError(
                f"it has {size} bytes; {dtype.name} {shape} is {wanted} with its header"
            )
        opened.seek(0)
        return cast(npt.NDArray[Any], np.load(opened, allow_pickle=False))


def _found(error: LibraryDied) -> str:
    """What happened, without what became of the worker."""
    return error.found if error.death is None else f"the function {error.death.found}"


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
        raise ValueError(f"{value!r} is no limit")
    return value


def _write(target: Path, described: dict[str, Any]) -> None:
    (target / "case.json").write_text(json.dumps(described, indent=1))


def _text(case: Case, error: LibraryDied) -> str:
    lines = [f"{case.library}: {case.name}: {_found(error)}", *error.fix]
    return "\n".join(lines) + "\n"


def _forget_old(folder: Path) -> None:
    with suppress(OSError):
        cases = sorted(p.parent for p in folder.glob("*/case.json"))
        for old in cases[:-KEPT]:
            shutil.rmtree(old, ignore_errors=True)
