"""The PTX in the package is that of the sources beside it."""

from __future__ import annotations

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_ptx_is_compiled_from_these_sources() -> None:
    spec = importlib.util.spec_from_file_location("ptx", ROOT / "scripts" / "ptx.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    for name in script.NAMES:
        text = script.ptx(name).read_text()
        assert text.startswith(f"// {script.digest(name)}\n"), "make ptx"
        assert f".entry headrace_{name}(" in text
        assert ".target sm_52" in text
        assert "fma.rn.f32" not in text  # a fused multiply-add would give other bits than the CPU
