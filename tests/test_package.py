"""The package as a whole: light to import, all public names there, arrows one way."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import noria

SOURCE = Path(noria.__file__).parent

# A folder never imports, at module level, from a later stop on the data's way.
ORDER = ["errors", "notices", "cuda", "urls", "user_module", "meta", "config", "network", "plugins"]
ORDER += ["engine", "media", "custom"]
ORDER += ["infer", "track", "draw", "pipeline", "diagnose", "trt", "cli"]


@pytest.mark.parametrize("name", noria.__all__)
def test_public_name_resolves(name: str) -> None:
    assert getattr(noria, name) is not None


def test_import_is_light() -> None:
    heavy = "numpy onnx onnxruntime av pydantic PIL click rich yaml supervision cv2 torch"
    code = "import sys, noria; print(*[m for m in sys.argv[1:] if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code, *heavy.split()], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []


def _module_level_imports(path: Path) -> set[str]:
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("noria."):
            found.add((node.module or "").split(".")[1])
    return found


@pytest.mark.parametrize(
    "path", [p for p in sorted(SOURCE.rglob("*.py")) if p.parent != SOURCE], ids=str
)
def test_folders_import_only_from_earlier_ones(path: Path) -> None:
    room = path.relative_to(SOURCE).parts[0]
    for other in _module_level_imports(path) - {"_lazy", "_native", room}:
        assert ORDER.index(other) < ORDER.index(room), f"{path} imports noria.{other}"


def test_no_file_is_above_600_lines() -> None:
    root = Path(__file__).parents[1]
    files = [*SOURCE.rglob("*.py"), *(root / "tests").rglob("*.py")]
    files += [*(root / "native").rglob("*.cpp"), *(root / "native").rglob("*.h")]
    assert [str(p) for p in files if len(p.read_text().splitlines()) > 600] == []


def test_stub_of_the_native_core_is_current(tmp_path: Path) -> None:
    root = Path(__file__).parents[1]
    command = [sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "noria._native"]
    command += ["-p", str(root / "native" / "stubs.pat"), "-o", str(tmp_path / "x.pyi")]
    subprocess.run(command, check=True)
    stub = root / "src" / "noria" / "_native.pyi"
    assert stub.read_text() == (tmp_path / "x.pyi").read_text(), "run make stubs"
