"""Counts what inference adds, in any process whose Python finds this file.

COUNTED names a JSON file: element -> its batches, frames, objects and classifier results. It is
written each batch, since a program in C ends without Python's end.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
from collections import Counter
from importlib.abc import MetaPathFinder
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

OUT = Path(os.environ["COUNTED"])
MODULE = "headrace.gstreamer.elements.infer"
found: dict[str, Counter[str]] = {}


def _write() -> None:
    OUT.write_text(json.dumps(found))


def _count(name: str, frames: list[Any]) -> None:
    from headrace.gstreamer.pyds.meta import items

    row = found.setdefault(name, Counter())
    row += Counter(batches=1, frames=len(frames))
    for frame in frames:
        objects = items(frame, "obj_meta_list")
        row["objects"] += len(objects)
        row["classes"] += sum(len(items(one, "classifier_meta_list")) for one in objects)
        row["results"] += len(objects) + len(items(frame, "frame_user_meta_list"))
    _write()


class Finder(MetaPathFinder):
    """Wraps the completion of a batch once the element's module is imported."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Find the element's module and let `exec_module` wrap it; nothing for others."""
        if name != MODULE:
            return None
        sys.meta_path.remove(self)
        spec: Any = find_spec(name)
        run = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            run(module)
            complete = module.NvInfer._complete

            def counted(element: Any, work: Any) -> None:
                complete(element, work)
                _count(element.get_name(), work[2])

            module.NvInfer._complete = counted

        spec.loader.exec_module = exec_module
        return spec


def _on_import(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "import" and arguments[0] == MODULE and MODULE not in sys.modules:
        sys.meta_path.insert(0, Finder())  # ahead of that of an editable installation


sys.addaudithook(_on_import)
atexit.register(_write)
