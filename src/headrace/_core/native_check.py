"""Check on import that the native core fits the Python code beside it."""

from __future__ import annotations

import os

from headrace._core._native_api import NATIVE_API


def check_native() -> None:
    """Compare the core's sources with the expected ones: no file is read for it.

    Raises:
        ImportError: there is no core, it cannot be loaded, or it is of other sources.
    """
    try:
        from headrace._core import _native
    except ImportError as error:
        text = f"headrace's native core cannot be loaded: {error}\n  {_advice()}"
        raise ImportError(text, name="headrace._core._native") from error
    api = getattr(_native, "native_api", lambda: "none")()
    if api != NATIVE_API:
        raise ImportError(
            "headrace's native core was compiled from other sources than the Python code beside it "
            f"(its functions are {api}, expected {NATIVE_API})\n  {_advice()}",
            name="headrace._core._native",
            path=_native.__file__,
        )


def _advice() -> str:
    checkout = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
    if os.path.isfile(os.path.join(checkout, "CMakeLists.txt")):
        return f"run `make build` in {checkout}"
    return "install headrace again, in its checkout: pip install --force-reinstall ."
