"""The types of `pyds` that headrace-gst brings."""

from __future__ import annotations

import ast
import runpy
from pathlib import Path

from headrace.gstreamer import pyds

ROOT = Path(__file__).parents[3]
STUB = ROOT / "packaging" / "gst" / "pyds-stubs" / "__init__.pyi"


def test_they_are_those_of_the_classes() -> None:
    text = runpy.run_path(str(ROOT / "scripts" / "pyds_stubs.py"))["stub"]()
    assert STUB.read_text() == text, "make stubs writes them anew"


def test_every_name_is_there_and_no_other() -> None:
    tree = ast.parse(STUB.read_text())
    names = set()
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
        elif isinstance(node, ast.Assign):
            names.update(one.id for one in node.targets if isinstance(one, ast.Name))
    assert names - {"Struct"} <= set(dir(pyds))
    used = {name for name in dir(pyds) if name.startswith(("Nv", "nvds", "NVDS", "alloc_", "get_"))}
    assert used <= names
