"""Description of the function of a custom library that makes a config's network."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from headrace._core.errors import CustomLibraryError
from headrace.binary.elf import ElfError, ElfFile
from headrace.binary.entry_points import FIXED, KINDS, OLD_SIGNATURE_BEFORE, made_for_tensorrt
from headrace.binary.tensorrt_line import served
from headrace.custom.inspect import inspect_library
from headrace.infer.model.library_source import function_of

if TYPE_CHECKING:
    from headrace.config.model_config import ModelConfig


@dataclass(frozen=True, slots=True)
class EngineFunction:
    """A function that makes a network.

    Attributes:
        there: True if the library has it.
        kind: of `entry_points.KINDS`.
        signature: how it is called.
        reason: evidence for that signature.
        evidence: of the library's compiler, headers, and sizes in its code.
        callable_here: False if headrace cannot call it: it was compiled against TensorRT's headers,
            and nothing tells of which release.
    """

    library: Path
    function: str
    there: bool
    kind: str
    signature: str
    reason: str
    evidence: tuple[str, ...] = ()
    callable_here: bool = True


def engine_function(cfg: ModelConfig, known_name: str | None) -> EngineFunction | None:
    """Describe the function that makes the network of `cfg`; None if a model file is all there is.

    It is `known_name`, if that applies. Reads the library's file; runs no code of it.
    """
    path = cfg.custom_lib_path
    if path is None or not path.is_file():
        return None
    if path.suffix.lower() in (".py", ".pyw"):
        return _of_python(cfg, path, known_name)
    try:
        elf = ElfFile.read(path)
        report = inspect_library(path, load=False)
    except (ElfError, OSError, CustomLibraryError):
        return None  # opening it raises the error
    exported = elf.exported()
    function = known_name or function_of(cfg, exported)
    if function is None:
        return None
    kind = FIXED.get(function, "engine creator")
    use = served(elf, function)
    line_of_file = use.line if use is not None else None
    signature, reason = _signature(kind, elf)
    evidence = [report.built]
    version = made_for_tensorrt(elf)
    if version is not None:
        evidence.append(f"the headers stood for TensorRT {version}")
    evidence += [f"linked against {x.name}" for x in report.linked if "nvinfer" in x.name]
    evidence += [e.reason for e in report.evidence]
    return EngineFunction(
        path,
        function,
        function in exported,
        kind,
        signature,
        reason,
        tuple(evidence),
        callable_here=report.headers != "nvidia" or line_of_file is not None,
    )


def _of_python(cfg: ModelConfig, path: Path, known_name: str | None) -> EngineFunction | None:
    from headrace.infer.model.library_source import engine_signature

    function = known_name or cfg.engine_create_func_name
    if function is None:
        return None
    kind = FIXED.get(function, "engine creator")
    return EngineFunction(
        path, function, known_name is not None, kind, engine_signature(function), "as all in Python"
    )


def _signature(kind: str, elf: ElfFile) -> tuple[str, str]:
    """Choose a signature, and its reason: names with C linkage have no types."""
    new = KINDS[kind].signature
    if kind != "engine creator":
        return new, "by its name, which is fixed"
    old = new.replace("nvinfer1::IBuilderConfig*, ", "")
    before = f"TensorRT {OLD_SIGNATURE_BEFORE} and later give it a config"
    release = made_for_tensorrt(elf)
    reason = f": compiled for TensorRT {release}; {before}"
    if release is None:
        names = [n for n in elf.needed if n.startswith("libnvinfer.so.")]
        number = names[0].removeprefix("libnvinfer.so.").partition(".")[0] if names else ""
        if not number.isdigit():
            return new, f"its symbol does not tell; {before}, earlier ones do not"
        release, reason = int(number), f", as far as it shows: linked against {names[0]}"
    is_old = release < OLD_SIGNATURE_BEFORE
    return (old, f"old{reason}") if is_old else (new, f"new{reason}")
