"""Kernels that cuDNN lets NVRTC compile, kept in the user's cache folder.

For a model's first run cuDNN writes sources and asks `libnvrtc`: for YOLOX-nano on an H200 30
times, 5.2 of the run's 6 s, in each process again. So a library of that name that passes everything
on (native/nvrtc) is loaded before, and what was compiled once is read from then on.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from contextlib import suppress
from ctypes import CFUNCTYPE, c_char_p, c_int, c_size_t, c_void_p
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import msgspec

from headrace._core import _native
from headrace._core.files import sha256_of, write_atomically
from headrace._core.gpu.cuda import in_nvidia_packages

MAJORS = (12, 13)  # of CUDA, with a library in `_PASSING`
_PASSING = Path(_native.__file__).with_name("nvrtc")
_FOLDERS = ("/usr/local/cuda/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu")
_IMAGES = ("PTX", "CUBIN", "ProgramLog")  # what is kept of a program
_OTHERS = ("LTOIR", "OptiXIR", "NVVM", "TileIR")  # for these it is compiled
_READS_FILES = ("-I", "-include", "--include-path", "--pre-include", "-pch", "--pch", "--use-pch",
                "--create-pch", "-use-pch", "-create-pch")  # fmt: skip
"""Options of programs that are not kept: files beside their sources may change."""

_OK = 0
_MAX_BYTES = 1 << 26
_SIGNATURES = {  # of what is not only passed on
    "CreateProgram": (c_void_p, c_void_p, c_void_p, c_int, c_void_p, c_void_p),
    "DestroyProgram": (c_void_p,),
    "AddNameExpression": (c_void_p, c_void_p),
    "CompileProgram": (c_void_p, c_int, c_void_p),
    "GetLoweredName": (c_void_p, c_void_p, c_void_p),
    **{f"Get{what}{part}": (c_void_p, c_void_p) for what in (*_IMAGES, *_OTHERS)
       for part in ("", "Size")},
}  # fmt: skip


class _Compiled(msgspec.Struct, frozen=True):
    """Results of a compilation.

    Attributes:
        images: by name of the function behind `nvrtcGet`.
        lowered: name expression -> name in the image.
    """

    images: dict[str, bytes]
    lowered: dict[bytes, bytes]


@dataclass(slots=True)
class _Program:
    """A program of NVRTC.

    Attributes:
        texts: everything that decides what the compiler makes of it.
        names: its name expressions.
        options: of the compilation that was spared.
        kept: what an earlier one gave; None: it is compiled, or will be.
        lent: C strings that callers have addresses of.
    """

    texts: list[bytes]
    names: list[bytes] = field(default_factory=list)
    options: list[bytes] = field(default_factory=list)
    kept: _Compiled | None = None
    lent: dict[bytes, Any] = field(default_factory=dict)


class KeptKernels:
    """The functions of NVRTC that compile and give results, over those of a library.

    Args:
        real: the library.
        folder: where results are kept.
        version: of the library: other ones compile anew.
    """

    def __init__(self, real: ctypes.CDLL, folder: Path, version: str) -> None:
        self._real, self._folder, self._version = real, folder, version
        self._programs: dict[int, _Program] = {}
        mine: dict[str, Callable[..., int]] = {
            "CreateProgram": self._create,
            "DestroyProgram": self._destroy,
            "AddNameExpression": self._add_name,
            "CompileProgram": self._compile,
            "GetLoweredName": self._lowered_name,
        }
        for what in _IMAGES:
            mine[f"Get{what}"] = partial(self._image, what)
            mine[f"Get{what}Size"] = partial(self._image_size, what)
        for what in _OTHERS:
            for name in (f"Get{what}", f"Get{what}Size"):
                mine[name] = partial(self._other, name)
        self._functions = {
            f"nvrtc{name}": CFUNCTYPE(c_int, *_SIGNATURES[name])(
                partial(self._safe, name, function)
            )
            for name, function in mine.items()
            if hasattr(real, f"nvrtc{name}")
        }

    def serve(self, passing: ctypes.CDLL, names: list[str]) -> None:
        """Let `passing` call these functions, and the library's for all others."""
        for name in names:
            function = self._functions.get(name) or getattr(self._real, name, None)
            if function is not None:
                slot = c_void_p.in_dll(passing, f"headrace_slot_{name}")
                slot.value = ctypes.cast(function, c_void_p).value

    def _safe(self, name: str, function: Callable[..., int], *arguments: Any) -> int:
        """Call one of ours; where it fails, the library does all of it."""
        try:
            return function(*arguments)
        except Exception:  # an error in a callback would look like success
            if name not in ("CreateProgram", "DestroyProgram"):
                self._compile_after_all(arguments[0])
            return self._call(name, *arguments)

    def _call(self, name: str, *arguments: Any) -> int:
        function = getattr(self._real, f"nvrtc{name}")
        function.argtypes = _SIGNATURES[name]
        return int(function(*arguments))

    def _compile_after_all(self, handle: int) -> None:
        """Let the library compile a program that was taken from the folder."""
        program = self._programs.pop(handle, None)
        if program is not None and program.kept is not None:
            options = (c_char_p * len(program.options))(*program.options)
            self._call("CompileProgram", handle, len(options), ctypes.addressof(options))

    def _create(
        self, out: int, source: int, name: int | None, count: int, headers: int, names: int
    ) -> int:
        status = self._call("CreateProgram", out, source, name, count, headers, names)
        if status == _OK:
            texts = [ctypes.string_at(source), ctypes.string_at(name) if name else b""]
            texts += [*_strings(count, headers), *_strings(count, names)]
            self._programs[_pointed(out)] = _Program([self._version.encode(), *texts])
        return status

    def _destroy(self, place: int) -> int:
        self._programs.pop(_pointed(place), None)
        return self._call("DestroyProgram", place)

    def _add_name(self, handle: int, expression: int) -> int:
        status = self._call("AddNameExpression", handle, expression)
        if status == _OK and (program := self._programs.get(handle)) is not None:
            program.names.append(ctypes.string_at(expression))
        return status

    def _compile(self, handle: int, count: int, options: int | None) -> int:
        program = self._programs.get(handle)
        texts = _strings(count, options)
        if program is None or any(text.decode().startswith(_READS_FILES) for text in texts):
            return self._call("CompileProgram", handle, count, options)
        path = self._folder / _key(program.texts, texts, program.names)
        program.kept = _read(path)
        if program.kept is not None:
            program.options = texts
            return _OK
        status = self._call("CompileProgram", handle, count, options)
        if status == _OK:
            with suppress(OSError):  # the next process compiles again
                self._keep(path, handle, program)
        return status

    def _keep(self, path: Path, handle: int, program: _Program) -> None:
        images, lowered = {}, {}
        for what in _IMAGES:
            size = c_size_t()
            if self._call(f"Get{what}Size", handle, ctypes.addressof(size)) == _OK:
                data = ctypes.create_string_buffer(max(1, size.value))
                if self._call(f"Get{what}", handle, ctypes.addressof(data)) == _OK:
                    images[what] = data.raw[: size.value]
        for name in program.names:
            text = c_char_p()
            address = ctypes.addressof(text)
            if self._call("GetLoweredName", handle, _address(name), address) != _OK:
                return
            lowered[name] = text.value or b""
        record = msgspec.msgpack.encode(_Compiled(images, lowered))
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, [sha256_of(record).encode(), record], durable=False)

    def _kept(self, handle: int) -> tuple[_Program, _Compiled] | None:
        program = self._programs.get(handle)
        return None if program is None or program.kept is None else (program, program.kept)

    def _image_size(self, what: str, handle: int, out: int) -> int:
        found = self._kept(handle)
        if found is None:
            return self._call(f"Get{what}Size", handle, out)
        c_size_t.from_address(out).value = len(found[1].images[what])
        return _OK

    def _image(self, what: str, handle: int, out: int) -> int:
        found = self._kept(handle)
        if found is None:
            return self._call(f"Get{what}", handle, out)
        data = found[1].images[what]
        ctypes.memmove(out, data, len(data))
        return _OK

    def _lowered_name(self, handle: int, expression: int, out: int) -> int:
        found = self._kept(handle)
        if found is None:
            return self._call("GetLoweredName", handle, expression, out)
        program, compiled = found
        name = ctypes.string_at(expression)
        if name not in program.lent:
            program.lent[name] = ctypes.create_string_buffer(compiled.lowered[name])
        c_void_p.from_address(out).value = ctypes.addressof(program.lent[name])
        return _OK

    def _other(self, name: str, handle: int, out: int) -> int:
        self._compile_after_all(handle)
        return self._call(name, handle, out)


@cache
def keep_kernels(major: int) -> bool:
    """Keep results of NVRTC in this process from now on.

    Args:
        major: of the CUDA whose NVRTC will be asked.

    Returns:
        False where something has loaded it already, or there is none.
    """
    path = _real_path(f"libnvrtc.so.{major}")
    if major not in MAJORS or path is None or _native.loaded_library("libnvrtc.so"):
        return False
    try:
        passing = ctypes.CDLL(str(_PASSING / f"libnvrtc.so.{major}"))  # first: it has the name
        real = ctypes.CDLL(str(path))
        size = path.stat().st_size
    except OSError:
        return False
    _serving.append(KeptKernels(real, kernels_folder(), f"{path.name} {size}"))
    _serving[-1].serve(passing, _names(passing))
    return True


_serving: list[KeptKernels] = []  # as long as the process: compiled code has their addresses


def kernels_folder() -> Path:
    """`headrace/kernels` in the user's cache folder (XDG)."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base) / "headrace" / "kernels"


def _names(passing: ctypes.CDLL) -> list[str]:
    """Functions of the passing library."""
    return (c_char_p.in_dll(passing, "headrace_passed").value or b"").decode().split()


def _real_path(name: str) -> Path | None:
    places = [*in_nvidia_packages(name), *(Path(folder, name) for folder in _FOLDERS)]
    return next((place for place in places if place.exists()), None)


def _read(path: Path) -> _Compiled | None:
    try:
        with open(path, "rb") as file:
            digest, data = file.read(64), file.read(_MAX_BYTES)
        if sha256_of(data).encode() != digest:
            return None
        return msgspec.msgpack.decode(data, type=_Compiled)
    except (OSError, msgspec.MsgspecError):
        return None


def _key(*parts: list[bytes]) -> str:
    """A name for texts: no other ones have it."""
    return sha256_of(msgspec.msgpack.encode(parts))


def _pointed(place: int) -> int:
    return c_void_p.from_address(place).value or 0


def _strings(count: int, array: int | None) -> list[bytes]:
    if not array:
        return []
    return [text or b"" for text in (c_char_p * count).from_address(array)]


def _address(text: bytes) -> int:
    return ctypes.cast(c_char_p(text), c_void_p).value or 0
