"""C++ shared libraries as custom libraries."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

from headrace._core import _native
from headrace._core.errors import CustomLibraryError
from headrace._core.findings import Finding
from headrace._core.gpu.cuda import why_no_gpu
from headrace.binary.code_calls import CodeCalls
from headrace.binary.elf import is_foreign
from headrace.binary.entry_points import kinds_of, returns_boxes, standing
from headrace.binary.gpu_code import gpu_evidence
from headrace.binary.symbol_names import demangled, missing_name_hints, parser_like
from headrace.custom.box_layout import LayoutDecision
from headrace.custom.cpp_parsers import PARSERS, CppParser, cpp_initializer
from headrace.custom.device_tensors import DeviceTensors
from headrace.custom.emulated.emulator import Emulator, find_emulator
from headrace.custom.emulated.library import EmulatedFunction, EmulatedObject
from headrace.custom.in_process import note_loading
from headrace.custom.load_errors import (
    check_header,
    compile_command,
    load_failed,
    no_such_function,
    of_another_kind,
)
from headrace.custom.stand_ins import note_calls, provide_stand_ins
from headrace.custom.user_calls import (
    INPUT_INITIALIZER,
    InputInitializer,
    ParserKind,
    checked_initializer,
)
from headrace.custom.validate import CustomLibrary, UserParser
from headrace.trt.host.loading import open_shared_object

# Parsers of the public collections that set rotation_angle; all others leave it to chance.
SETS_ROTATION = frozenset({"NvDsInferParseCustomYoloV11OBB"})

# std::string and its functions in the layout before C++11.
_OLD_STRING = re.compile(r"_ZNK?Ss|_ZSs")

# By convention, these take device pointers.
_TAKES_DEVICE_POINTERS = re.compile(r"(_cuda|Cuda)$")


class CppLibrary(CustomLibrary):
    """The shared library that `custom-lib-path` names, loaded into this process.

    Attributes:
        layout: bytes of one of its boxes, and how sure that is.
    """

    kind = "cpp"

    def __init__(self, path: Path, *, abi: str, rotation: bool | None) -> None:
        self.path = path
        self.decisions: list[Finding] = []
        self._rotation = rotation
        self._elf = check_header(path)
        note_loading(path)
        try:
            self._object = self._open()
        except RuntimeError as error:
            reason = str(error)
            raise load_failed(self._elf, reason, demangled(reason)) from error
        self.layout = LayoutDecision(self._elf, abi, self.decisions)
        if abi != "auto" or returns_boxes(self._elf):
            self.layout.announce()

    def _open(self) -> _native.SharedObject | EmulatedObject:
        if is_foreign(self._elf):
            emulator = find_emulator()
            assert isinstance(emulator, Emulator)  # see check_header
            emulated = EmulatedObject(self.path, self._elf, emulator, self.decisions)
            note_calls(self._elf, self.decisions, emulated.calls)
            return emulated
        provide_stand_ins(self._elf, self.decisions)
        opened = open_shared_object(self.path, self._elf, self.decisions)
        note_calls(self._elf, self.decisions, _native.stand_in_calls())
        return opened

    def __repr__(self) -> str:
        return f"CppLibrary({str(self.path)!r}, {self.layout})"

    @property
    def native(self) -> _native.SharedObject:
        """The `_native.SharedObject`, open.

        Raises:
            CustomLibraryError: an emulator runs it: it is in no memory of this machine.
        """
        if isinstance(self._object, EmulatedObject):
            raise CustomLibraryError(
                f"the library is built for {self._elf.machine_name}: an emulator runs its "
                "functions, not those that give factories of layers",
                where=str(self.path),
                fix="compile its source on this machine",
                code="library-machine",
            )
        return self._object

    @property
    def emulated(self) -> EmulatedObject | None:
        """The library as an emulator runs it; None if it is in this process."""
        return self._object if isinstance(self._object, EmulatedObject) else None

    def _function(self, name: str) -> _native.CustomFunction | EmulatedFunction:
        if isinstance(self._object, EmulatedObject):
            return self._object.function(name)
        return _native.CustomFunction(self._object, name)

    def symbols(self) -> list[str]:
        """List exported functions with a parser's name, sorted."""
        return parser_like(n for n in self._elf.functions() if not n.startswith("_Z"))

    def _parser(self, kind: ParserKind, name: str) -> UserParser:
        """Find the function that the library exports as `name`.

        Calls into one library, by whatever thread and parser, happen one after another: existing
        parsers keep state in function statics. The interpreter lock is released meanwhile.

        Raises:
            CustomLibraryError: there is no such function, or it needs a GPU, or gives strings of
                the layout before C++11.
        """
        parser = PARSERS[kind]
        where = self._require(name, parser)
        if kind == "bbox":
            self.layout.announce()
        if kind == "classifier" and any(
            _OLD_STRING.match(s.name) for s in self._elf.symbols if not s.defined
        ):
            raise CustomLibraryError(
                "the library is compiled with _GLIBCXX_USE_CXX11_ABI=0: its strings are of another "
                "kind than this system's",
                where=where,
                fix=f"compile it again without that: {compile_command('parser.cpp')}",
            )
        native = self._function(name)
        rotation = name in SETS_ROTATION if self._rotation is None else self._rotation
        on_device = DeviceTensors() if self._takes_device_pointers(name) else None
        call = parser(
            native,
            where,
            self.decisions,
            layout=self.layout,
            rotation=rotation,
            on_device=on_device,
        )
        return call, where, None, []

    def _takes_device_pointers(self, name: str) -> bool:
        """True if a function, by its name, works on the GPU's memory; adds a notice then."""
        if not _TAKES_DEVICE_POINTERS.search(name):
            return False
        text = f"{name} works on the GPU: each output is copied there for it"
        self.decisions.append(Finding("function-copies", "info", text, str(self.path)))
        return True

    def input_initializer(self) -> InputInitializer | None:
        """Get the function `NvDsInferInitializeInputLayers`; None if the library exports none."""
        if not self._object.has(INPUT_INITIALIZER):
            return None
        where = f"{self.path}: {INPUT_INITIALIZER}"
        native = self._function(INPUT_INITIALIZER)
        return checked_initializer(cpp_initializer(native, where), where)

    def _require(self, name: str, kind: type[CppParser]) -> str:
        """Return `library: function`, if there is a function of that name that can run here."""
        where = f"{self.path}: {name}"
        symbol = next((s.kind for s in self._elf.symbols if s.name == name and s.defined), None)
        if symbol == 1:
            problem = f"{name} is a variable, not a function"
            raise CustomLibraryError(problem, where=where, code="function-missing")
        if not self._object.has(name):
            raise no_such_function(self._elf, name, kind.kind, kind.check_macro)
        calls = CodeCalls(self._elf)
        if (kinds := kinds_of(calls, name)) and kind.kind not in kinds:
            raise of_another_kind(self._elf, name, kind.kind, kinds[0])
        if _TAKES_DEVICE_POINTERS.search(name) and (reason := self._why_not_on_device()):
            others = [n for n in self.symbols() if not _TAKES_DEVICE_POINTERS.search(n)]
            raise CustomLibraryError(
                f"{name} works on GPU memory and cannot run here: {reason}",
                where=where,
                expected="a parser for host memory",
                fix=missing_name_hints(
                    _TAKES_DEVICE_POINTERS.sub("", name),
                    others,
                    kind="other parsers",
                    standing=partial(standing, expected=kind.kind, calls=calls),
                ).hints,
                code="function-for-gpu",
            )
        return where

    def _why_not_on_device(self) -> str | None:
        """Why functions for the GPU cannot run, or None."""
        if gpu_evidence(self.path) is None:
            return "the library has no code for a GPU"
        return why_no_gpu()
