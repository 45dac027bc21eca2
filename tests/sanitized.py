"""A pytest plugin: the tests run with the native core that `make sanitize` compiled.

`python -m pytest -p tests.sanitized …`, with the sanitizers' run-time library preloaded.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path

FOLDER = Path(os.environ["HEADRACE_SANITIZED"])


def _take_place() -> None:
    # Compilers and interpreters that tests start are not to be examined.
    for name in ("LD_PRELOAD", "ASAN_OPTIONS", "LSAN_OPTIONS", "PYTHONMALLOC"):
        os.environ.pop(name, None)
    assert "headrace._core._native" not in sys.modules, "the ordinary core is loaded already"
    (compiled,) = FOLDER.glob("_native.*.so")
    # Headers and link libraries are looked for beside the folder of the module.
    (FOLDER / "_core").mkdir(exist_ok=True)
    path = Path(shutil.copy(compiled, FOLDER / "_core"))
    shutil.copytree(
        Path(__file__).parents[1] / "native/include", FOLDER / "include", dirs_exist_ok=True
    )
    shutil.copytree(FOLDER / "link", FOLDER / "lib", dirs_exist_ok=True)
    spec = importlib.util.spec_from_file_location("headrace._core._native", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["headrace._core._native"] = module
    spec.loader.exec_module(module)
    import headrace  # which finds it loaded

    headrace._core._native = module  # type: ignore[attr-defined]


_take_place()
