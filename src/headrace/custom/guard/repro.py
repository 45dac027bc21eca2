"""Cases: calls that ended a worker, saved so that they can be repeated."""

from __future__ import annotations

import json
import os
import platform
import shlex
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import prod
from pathlib import Path
from tokenize import TokenError
from typing import TypeAlias, cast

import numpy as np

from headrace._core.errors import CustomLibraryError, HeadraceError
from headrace._core.files import os_reason
from headrace._core.types import Array, Message
from headrace.binary.regular_files import open_regular
from headrace.custom.guard.call_args import ARGS_READERS, ArgsReader, CallArgs, plain_text
from headrace.custom.guard.crash import LibraryDiedError
from headrace.custom.guard.options import GuardOptions, crash_folder

KEPT = 20  # folders
MAX_CASES = 3  # saved by one library
MAX_BYTES = 1 << 29
MAX_ARRAYS = 4096
MAX_CASE = 16 << 20  # bytes of `case.json`: labels and thresholds of many classes
_LIMITS = GuardOptions()
_DAMAGE = (OSError, ValueError, TypeError, KeyError, AttributeError, EOFError, RecursionError,
           OverflowError, MemoryError, TokenError, HeadraceError)  # fmt: skip
_KIND_OF_JSON = {list: "a list", str: "text", int: "a number", float: "a number",
                 bool: "a boolean", type(None): "null"}  # fmt: skip
Arrays: TypeAlias = "Mapping[str, Array]"


@dataclass(frozen=True, slots=True)
class Case:
    """One call of user code, without its arrays.

    Attributes:
        library: the file, and the hash it had.
        kind: a kind of parser; `inputs`: `NvDsInferInitializeInputLayers`; `load`: loading it;
            `network`: a function that makes one; `build`: building the plugins of a network;
            `plugin`: loading and calling one of a plan.
        name: the function, or the plugin.
        abi, rotation: as `open_library` takes them.
        args: its arguments.
        timeout_s, memory_mib: limits that the call had, see `GuardOptions`.
    """

    library: Path
    sha256: str
    kind: str
    name: str
    abi: str
    rotation: bool | None
    args: CallArgs
    timeout_s: float = _LIMITS.timeout_s
    memory_mib: int = _LIMITS.memory_mib


@dataclass(frozen=True, slots=True)
class FatalCall:
    """A call that ended its worker, with its arrays; a `Case` names the library, too."""

    kind: str
    name: str
    args: CallArgs
    timeout_s: float
    arrays: Arrays = field(default_factory=dict)


class CaseSaver:
    """Saves the fatal calls of one library, the first `MAX_CASES`."""

    def __init__(self, library: Path, sha256: str, abi: str, rotation: bool | None) -> None:
        self._of = library, sha256
        self._as = abi, rotation
        self._saved = 0

    def hint(
        self, error: LibraryDiedError, options: GuardOptions, call: Callable[[], FatalCall]
    ) -> str | None:
        """Save a call; return the line of an error about that, if there is one."""
        if error.death is None or options.once or self._saved >= MAX_CASES:
            return None
        self._saved += 1
        of = call()
        case = Case(
            *self._of, of.kind, of.name, *self._as, of.args, of.timeout_s, options.memory_mib
        )
        saved = save_case(case, of.arrays, error, options.crash_dir)
        if not isinstance(saved, Path):
            return f"its inputs cannot be saved: {saved}"
        how = f"headrace replay {shlex.quote(str(saved))}"
        if of.kind == "load":
            return f"to repeat that: {how}"
        return f"its inputs are saved; to repeat the call: {how}"

    def with_hint(
        self, error: LibraryDiedError, options: GuardOptions, call: Callable[[], FatalCall]
    ) -> LibraryDiedError:
        """Return the error with `hint` in it."""
        hint = self.hint(error, options, call)
        return LibraryDiedError(error.finding, fix=hint, death=error.death)


def save_case(
    case: Case, arrays: Arrays, error: LibraryDiedError, folder: Path | None
) -> Path | str:
    """Write `case.json`, `report.txt` and one `.npy` per array into a new folder.

    Returns:
        The folder; or why it was not written, in words.

    Only the newest `KEPT` folders stay. Afterwards `error.in_frame` completes `case.json`.
    """
    size = sum(array.nbytes for array in arrays.values())
    if size > MAX_BYTES:
        return f"they have {size >> 20} MiB"
    if len(arrays) > MAX_ARRAYS:
        return f"they are {len(arrays)} tensors"
    folder = folder or crash_folder()
    now = datetime.now(UTC)
    name = f"{now:%Y%m%d-%H%M%S.%f}-{case.library.stem[:80]}-{case.name[:80]}"
    target = folder / "".join(
        c if c.isascii() and (c.isalnum() or c in "-_.") else "_" for c in name
    )
    described: Message = {
        "headrace-case": 1,
        "library": str(case.library),
        "sha256": case.sha256,
        "kind": case.kind,
        "function": case.name,
        "abi": case.abi,
        "rotation": case.rotation,
        "timeout": case.timeout_s,
        "memory": case.memory_mib,
        "layers": [{"name": name, "file": f"layer_{i}.npy"} for i, name in enumerate(arrays)],
        "found": f"{error:brief}" if error.death is None else f"the function {error.death.found}",
        "past_the_end": error.death is not None and error.death.past_the_end,
        "when": now.isoformat(timespec="seconds"),
        "machine": f"{platform.system()} {platform.machine()}",
    }
    try:
        target.mkdir(parents=True)
        for i, array in enumerate(arrays.values()):
            np.save(target / f"layer_{i}.npy", array, allow_pickle=False)
        described |= case.args.write(target)
        _write(target, described)
        lines = [f"{case.library}: {case.name}: {described['found']}", *error.finding.remedies]
        (target / "report.txt").write_text("\n".join(lines) + "\n")
    except (OSError, ValueError, HeadraceError) as problem:
        with suppress(OSError, ValueError):
            shutil.rmtree(target)
        reason = f"{problem:brief}" if isinstance(problem, HeadraceError) else os_reason(problem)
        return f"{target}: {reason}"
    _forget_old(folder)
    if error.death is not None:

        def on_frame(source: object, frame: int) -> None:
            with suppress(OSError):
                _write(target, {**described, "source": str(source), "frame": frame})

        error.death.on_frame = on_frame
    return target


def load_case(
    folder: Path, readers: Mapping[str, ArgsReader] = ARGS_READERS
) -> tuple[Case, dict[str, Array], Message]:
    """Load a call, its arrays by name, and all entries of `case.json`.

    Args:
        folder: as `save_case` wrote it.
        readers: of the kinds of calls that can be loaded.

    Raises:
        CustomLibraryError: the folder holds no such case, or it is damaged.
    """
    file = folder / "case.json"
    entries: Message = {}
    try:
        with open_regular(file, MAX_CASE) as opened:
            entries = json.loads(opened.read(MAX_CASE + 1))
        if not isinstance(entries, dict):
            raise TypeError(f"the JSON in it is {_KIND_OF_JSON[type(entries)]}, not an object")
        if entries.get("headrace-case") != 1 or entries.get("kind") not in readers:
            raise ValueError("it is no case of this version")
        library, function = Path(plain_text(entries["library"])), plain_text(entries["function"])
        timeout_s = _number(entries.get("timeout", _LIMITS.timeout_s))
        memory_mib = int(_number(entries.get("memory", _LIMITS.memory_mib)))
        named = [(str(entry["name"]), Path(entry["file"]).name) for entry in entries["layers"]]
        if len(named) > MAX_ARRAYS:
            raise ValueError(f"it has {len(named)} layers, and at most {MAX_ARRAYS} are read")
        if len(dict(named)) != len(named):
            raise ValueError("two of its layers have one name")
    except _DAMAGE as error:
        raise _no_case(file, error) from error
    arrays: dict[str, Array] = {}
    left = MAX_BYTES
    for name, filename in named:
        try:
            arrays[name] = _tensor(folder / filename, left)
        except _DAMAGE as error:
            raise _no_case(folder / filename, error) from error
        left -= arrays[name].nbytes
    try:
        args = readers[entries["kind"]](entries, [a.nbytes for a in arrays.values()], folder)
        rotation = None if entries["rotation"] is None else bool(entries["rotation"])
        sha256, abi = plain_text(entries["sha256"]), plain_text(entries["abi"])
        kind = entries["kind"]
        case = Case(library, sha256, kind, function, abi, rotation, args, timeout_s, memory_mib)
    except _DAMAGE as error:
        raise _no_case(file, error) from error
    return case, arrays, entries


def _no_case(file: Path, error: Exception) -> CustomLibraryError:
    reason = os_reason(error)
    if isinstance(error, OSError):
        file = Path(error.filename or file)
    elif isinstance(error, RecursionError):
        reason = "its JSON is nested too deeply"
    elif isinstance(error, KeyError):
        reason = f"{error} is absent"
    elif isinstance(error, HeadraceError):
        reason, file = f"{error:brief}", Path(error.where or file)
    return CustomLibraryError(
        f"there is no saved call to replay: {reason}",
        where=str(file),
        expected="a folder that a message of a guarded library named, as it was written",
        fix="run the model again: the call is saved again when it fails",
    )


def _tensor(file: Path, limit: int) -> Array:
    """Read the array of a `.npy`, of at most `limit` bytes.

    Raises:
        ValueError: it is none, or the file has another size than its header says.
        OSError: it cannot be read.
    """
    with open_regular(file, limit + 4096) as opened:
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
        if dtype.kind not in "biuf":
            raise ValueError(f"it has {dtype}, not numbers")
        data = prod(shape) * dtype.itemsize
        expected = opened.tell() + data
        size = os.fstat(opened.fileno()).st_size
        if size != expected:
            raise ValueError(
                f"it has {size} bytes; {dtype.name} {shape} is {expected} with its header"
            )
        if data > limit:
            raise ValueError(f"it has {data} bytes, and at most {limit} more are read")
        opened.seek(0)
        return cast(Array, np.load(opened, allow_pickle=False))


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
        raise ValueError(f"{value!r} is no limit")
    return value


def _write(target: Path, described: Message) -> None:
    (target / "case.json").write_text(json.dumps(described, indent=1))


def _forget_old(folder: Path) -> None:
    with suppress(OSError):
        for old in sorted(p.parent for p in folder.glob("*/case.json"))[:-KEPT]:
            shutil.rmtree(old, ignore_errors=True)
