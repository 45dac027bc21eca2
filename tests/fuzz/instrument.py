"""Import noria so that atheris can see which code an input reaches."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parents[2] / "src"


def instrumented(*packages: str) -> AbstractContextManager[Any]:
    """A context whose imports of `packages` are instrumented.

    An editable install finds noria through an import hook of its own, whose modules atheris does
    not instrument: without this, fuzzing runs blind. So the hook goes, and `src` takes its place.
    """
    try:
        import atheris
    except ImportError:
        sys.exit("atheris is not installed: pip install atheris")
    for name in [m for m in sys.modules if m == "noria" or m.startswith("noria.")]:
        del sys.modules[name]
    sys.meta_path[:] = [
        f
        for f in sys.meta_path
        if not type(f).__module__.startswith("_noria") and "ScikitBuild" not in type(f).__name__
    ]
    sys.path.insert(0, str(SOURCE))
    context: AbstractContextManager[Any] = atheris.instrument_imports(include=list(packages))
    return context
