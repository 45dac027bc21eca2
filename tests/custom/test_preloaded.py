"""Plugin libraries beside a parser library, by LD_PRELOAD."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.custom.preloaded import preload_hints, preloaded_plugins
from tests.trt.host.conftest import Compile, compile_for_tensorrt, compile_host

__all__ = ["compile_for_tensorrt", "compile_host"]

PROGRAM = """
import sys
from headrace.plugins.registry import known_plugins
print(known_plugins().find("MySwish") is not None)
"""


def test_a_preloaded_library_is_named(
    compile_host: Compile, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = compile_host("swish.cpp")
    monkeypatch.setenv("LD_PRELOAD", f"libgcc_s.so.1:{library} /not/there.so")
    assert preloaded_plugins() == [library]
    (hint,) = preload_hints()
    assert f"{library} is preloaded" in hint
    assert f"HEADRACE_PLUGINS={library}" in hint


@pytest.mark.slow
def test_one_of_tensorrts_own_headers_counts_too(
    compile_for_tensorrt: Compile, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = compile_for_tensorrt("compiled_abuses.cpp", 8)
    monkeypatch.setenv("LD_PRELOAD", str(library))
    assert preloaded_plugins() == [library]


@pytest.mark.slow
def test_named_libraries_are_loaded_with_the_standard_plugins(compile_host: Compile) -> None:
    library = compile_host("swish.cpp")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True,
        env={**os.environ, "HEADRACE_PLUGINS": str(library)},
    )  # fmt: skip
    assert done.stdout.strip() == "True"


def test_the_command_hears_what_is_preloaded(compile_host: Compile, tmp_path: Path) -> None:
    library = compile_host("swish.cpp")
    script = tmp_path / "list.py"
    script.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "-m", "headrace", "exec", str(script)],
        capture_output=True, text=True, check=True, env={**os.environ, "LD_PRELOAD": str(library)},
    )  # fmt: skip
    assert done.stdout.strip() == "True"
