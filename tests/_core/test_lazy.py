"""Late names: what a package says for type checkers and what it resolves are the same."""

from __future__ import annotations

import ast
import importlib
import pickle
import subprocess
import sys
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

import headrace

SOURCE = Path(headrace.__file__).parent


def _name(file: Path) -> str:
    return ".".join(("headrace", *file.parent.relative_to(SOURCE).parts))


LAZY = {
    _name(file): file
    for file in sorted(SOURCE.rglob("__init__.py"))
    if "= lazy(" in file.read_text()
}


def _promised(file: Path) -> dict[str, str]:
    """Public name -> module, of the imports that only type checkers see."""
    found = {}
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for line in node.body:
                assert isinstance(line, ast.ImportFrom)
                names = [alias.asname or alias.name for alias in line.names]
                found |= {name: str(line.module) for name in names if not name.startswith("_")}
    return found


def _at(module: str, name: str) -> Any:
    """What `from module import name` gives."""
    home = importlib.import_module(module)
    return vars(home)[name] if name in vars(home) else importlib.import_module(f"{module}.{name}")


NAMES = [(package, name) for package, file in LAZY.items() for name in _promised(file)]


def test_the_packages_with_late_names_are_found() -> None:
    assert {"headrace", "headrace.custom", "headrace.engine", "headrace.network"} <= set(LAZY)
    assert len(NAMES) > 80


@pytest.mark.parametrize("package", LAZY)
def test_public_names_are_those_of_the_imports(package: str) -> None:
    module = importlib.import_module(package)
    late = _promised(LAZY[package])
    assert late.keys() <= set(module.__all__)
    for name in module.__all__:
        assert getattr(module, name) is not None


@pytest.mark.parametrize(("package", "name"), NAMES)
def test_late_name_is_what_type_checkers_see(package: str, name: str) -> None:
    module = importlib.import_module(package)
    value = getattr(module, name)
    assert value is _at(_promised(LAZY[package])[name], name)
    assert vars(module)[name] is value, "resolved once"
    scope: dict[str, Any] = {}
    exec(f"from {package} import {name}", scope)
    assert scope[name] is value


def test_late_classes_and_functions_pickle_by_reference() -> None:
    values = [getattr(importlib.import_module(package), name) for package, name in NAMES]
    referred = [v for v in values if isinstance(v, type | FunctionType)]
    assert len(referred) > 70
    for value in referred:
        assert pickle.loads(pickle.dumps(value)) is value


@pytest.mark.parametrize("package", LAZY)
def test_unknown_names_tell_the_module_and_the_name(package: str) -> None:
    module = importlib.import_module(package)
    with pytest.raises(AttributeError, match=f"^module '{package}' has no attribute 'Plam'$"):
        _ = module.Plam
    with pytest.raises(ImportError, match=f"cannot import name 'Plam' from '{package}'"):
        exec(f"from {package} import Plam")


def _fresh(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.parametrize("package", LAZY)
@pytest.mark.sampled
def test_a_fresh_package_lists_names_that_nobody_asked_for(package: str) -> None:
    late = _promised(LAZY[package])
    modules = sorted(set(late.values()) - {"headrace", package})
    shown, loaded = _fresh(
        f"import sys, {package} as p\n"
        "print(*dir(p))\n"
        f"print(*[m for m in {modules} if m in sys.modules])"
    ).splitlines()
    assert late.keys() <= set(shown.split())
    assert shown.split() == sorted(set(shown.split()))
    assert "__name__" in shown.split()
    assert loaded == "", "the modules of late names"
