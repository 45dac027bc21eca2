"""Which library unwinds C++ exceptions, where GStreamer brings another one."""

from __future__ import annotations

import os
from contextlib import suppress


def keep_unwinder() -> None:
    """Let C++ exceptions of all libraries be handled by the compiler's own unwinder.

    GStreamer brings libunwind, which has functions of the same names. Whatever is loaded behind it
    would take these, and a C++ exception within onnxruntime, a library of Headrace's or a user's
    ends the process. It helps before GStreamer is loaded only.
    """
    import _ctypes  # without the package over it, which takes ten times as long

    with suppress(OSError):  # another compiler's system
        _ctypes.dlopen("libgcc_s.so.1", os.RTLD_GLOBAL | os.RTLD_NOW)
