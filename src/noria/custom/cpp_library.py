"""C++ shared libraries as custom libraries."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any, Literal

from noria import _native
from noria._core.errors import CustomLibraryError
from noria._core.notices import Notice
from noria.binary.entry_points import returns_boxes, standing
from noria.binary.symbol_names import demangled, missing_name_hints, parser_like
from noria.custom.box_layout import LayoutDecision
from noria.custom.cpp_parsers import (
    CppBoxParser,
    CppClassifierParser,
    CppFunction,
    CppInstanceParser,
    CppSegmentationParser,
    cpp_initializer,
)
from noria.custom.in_process import note_loading
from noria.custom.load_errors import check_header, compile_command, load_failed, no_such_function
from noria.custom.stand_ins import note_calls, provide_stand_ins
from noria.custom.user_calls import INPUT_INITIALIZER, InputInitializer, checked_initializer
from noria.custom.validate import CheckedClassifier, CheckedParser, CheckedSegmentation
from noria.host.loading import open_shared_object

# Parsers of the public collections that set rotation_angle; all others leave it to chance.
SETS_ROTATION = frozenset({"NvDsInferParseCustomYoloV11OBB"})

# std::string and its functions in the layout before C++11.
_OLD_STRING = re.compile(r"_ZNK?Ss|_ZSs")

# By convention, these take device pointers.
_TAKES_DEVICE_POINTERS = re.compile(r"(_cuda|Cuda)$")

_KINDS: dict[type[CppFunction], str] = {
    CppBoxParser: "detector",
    CppInstanceParser: "instance segmentation",
    CppClassifierParser: "classifier",
    CppSegmentationParser: "segmentation",
}


class CppLibrary:
    """The shared library that `custom-lib-path` names, loaded into this process.

    Attributes:
        layout: bytes of one of its boxes, and how sure that is.
    """

    kind: Literal["cpp", "python"] = "cpp"

    def __init__(self, path: Path, *, abi: str, rotation: bool | None) -> None:
        self.path = path
        self.decisions: list[Notice] = []
        self._rotation = rotation
        self._elf = check_header(path)
        note_loading(path)
        provide_stand_ins(self._elf, self.decisions)
        try:
            self._object = open_shared_object(path, self._elf, self.decisions)
        except RuntimeError as error:
            reason = str(error)
            raise load_failed(self._elf, reason, demangled(reason)) from error
        note_calls(self._elf, self.decisions)
        self.layout = LayoutDecision(self._elf, abi, self.decisions)
        if abi != "auto" or returns_boxes(self._elf):
            self.layout.announce()

    def __repr__(self) -> str:
        return f"CppLibrary({str(self.path)!r}, {self.layout})"

    @property
    def native(self) -> Any:
        """The `_native.SharedObject`, open."""
        return self._object

    def symbols(self) -> list[str]:
        """List exported functions with a parser's name, sorted."""
        return parser_like(n for n in self._elf.functions() if not n.startswith("_Z"))

    def bbox_parser(self, name: str) -> CheckedParser:
        """Get the detector parser that the library exports as `name`, its results checked.

        Calls into one library, by whatever thread and parser, happen one after another: existing
        parsers keep state in function statics. The interpreter lock is released meanwhile.

        Raises:
            CustomLibraryError: there is no such function, or it needs a GPU.
        """
        where = self._require(name, CppBoxParser)
        rotation = name in SETS_ROTATION if self._rotation is None else self._rotation
        self.layout.announce()
        native = _native.DetectorParser(self._object, name)
        parser = CppBoxParser(native, where, self.layout, self.decisions, rotation=rotation)
        return CheckedParser(parser, where)

    def instance_parser(self, name: str) -> CheckedParser:
        """Get the instance parser that the library exports as `name`; see `bbox_parser`.

        Its records have one size in every generation. The masks, which the library makes with
        new[], are copied and deleted at once.
        """
        where = self._require(name, CppInstanceParser)
        native = _native.InstanceParser(self._object, name)
        return CheckedParser(CppInstanceParser(native, where, self.decisions), where)

    def classifier_parser(self, name: str) -> CheckedClassifier:
        """Get the classifier parser that the library exports as `name`; see `bbox_parser`.

        Labels, which the library makes with strdup, are copied and freed at once.

        Raises:
            CustomLibraryError: also if the library has strings of the layout before C++11.
        """
        where = self._require(name, CppClassifierParser)
        if any(_OLD_STRING.match(s.name) for s in self._elf.symbols if not s.defined):
            raise CustomLibraryError(
                "the library is compiled with _GLIBCXX_USE_CXX11_ABI=0: its strings are of another "
                "kind than this system's",
                where=where,
                fix=f"compile it again without that: {compile_command('parser.cpp')}",
            )
        native = _native.ClassifierParser(self._object, name)
        return CheckedClassifier(CppClassifierParser(native, where), where)

    def segmentation_parser(self, name: str) -> CheckedSegmentation:
        """Get the segmentation parser that the library exports as `name`; see `bbox_parser`."""
        where = self._require(name, CppSegmentationParser)
        native = _native.SegmentationParser(self._object, name)
        return CheckedSegmentation(CppSegmentationParser(native, where, self.decisions), where)

    def input_initializer(self) -> InputInitializer | None:
        """Get the function `NvDsInferInitializeInputLayers`; None if the library exports none."""
        if not self._object.has(INPUT_INITIALIZER):
            return None
        where = f"{self.path}: {INPUT_INITIALIZER}"
        native = _native.InputInitializer(self._object, INPUT_INITIALIZER)
        return checked_initializer(cpp_initializer(native, where), where)

    def _require(self, name: str, kind: type[CppFunction]) -> str:
        """Return `library: function`, if there is a function of that name for host memory."""
        where = f"{self.path}: {name}"
        symbol = next((s.kind for s in self._elf.symbols if s.name == name and s.defined), None)
        if symbol == 1:
            raise CustomLibraryError(f"{name} is a variable, not a function", where=where)
        if not self._object.has(name):
            raise no_such_function(self._elf, name, _KINDS[kind], kind.check_macro)
        if _TAKES_DEVICE_POINTERS.search(name):
            others = [n for n in self.symbols() if not _TAKES_DEVICE_POINTERS.search(n)]
            raise CustomLibraryError(
                f"{name} works on GPU memory and cannot run here",
                where=where,
                expected="a parser for host memory",
                fix=missing_name_hints(
                    _TAKES_DEVICE_POINTERS.sub("", name),
                    others,
                    kind="other parsers",
                    standing=partial(standing, wanted=_KINDS[kind]),
                ),
            )
        return where
