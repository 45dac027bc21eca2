"""Import headrace so that atheris can see which code an input reaches."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parents[2] / "src"


def instrumented(*packages: str) -> AbstractContextManager[Any]:
    """A context whose imports of `packages` are instrumented.

    An editable install finds headrace through an import hook of its own, whose modules atheris does
    not instrument: without this, fuzzing runs blind. So the hook goes, and `src` takes its place;
    the native core, which is not in `src`, stays.
    """
    try:
        import atheris
    except ImportError:
        sys.exit("atheris is not installed: pip install atheris")
    import headrace._core._native as core

    for name in [m for m in sys.modules if m == "headrace" or m.startswith("headrace.")]:
        del sys.modules[name]
    sys.modules[core.__name__] = core
    sys.meta_path[:] = [
        f
        for f in sys.meta_path
        if not type(f).__module__.startswith("_headrace") and "ScikitBuild" not in type(f).__name__
    ]
    sys.path.insert(0, str(SOURCE))
    context: AbstractContextManager[Any] = atheris.instrument_imports(include=list(packages))
    return context


def fuzz_texts(check: Callable[[bytes], object], words: Iterable[str], folder: Path) -> None:
    """Fuzz with libFuzzer's arguments on the command line, for ever.

    Args:
        check: takes an input.
        words: those of the format, so that the fuzzer need not find them letter by letter.
        folder: where they are written to.
    """
    import atheris

    escaped = ("".join(f"\\x{byte:02x}" for byte in word.encode()) for word in dict.fromkeys(words))
    dictionary = folder / "words.dict"
    dictionary.write_text("".join(f'"{word}"\n' for word in escaped))
    arguments = [sys.argv[0], f"-dict={dictionary}", "-max_len=2048", "-timeout=10", *sys.argv[1:]]
    atheris.Setup(arguments, lambda data: check(data) and None)
    atheris.Fuzz()
