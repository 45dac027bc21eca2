"""Programs written for TensorRT's C++ interface, compiled by `headrace compile --exe`.

The file is a shared library that the kernel can start. It runs
`python -m headrace.trt.host.program`, which loads it with the host and calls `main`.
"""

from __future__ import annotations

import ctypes
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from headrace._core.errors import CustomLibraryError, HeadraceError
from headrace._core.findings import Finding
from headrace.binary.elf import ElfError, ElfFile
from headrace.trt.host.callback_errors import PrintedErrors, collected_errors
from headrace.trt.host.loading import open_shared_object, set_up

MISUSED = 2


def run_program(path: Path, words: Sequence[str]) -> int:
    """Load a program, and call its `main`.

    Args:
        path: the file.
        words: its command line, with the name that it was started by.

    Returns:
        The exit code.

    Raises:
        CustomLibraryError: no program, or a library of it is missing.
    """
    decisions: list[Finding] = []
    try:
        elf = ElfFile.read(path)
        set_up()  # also for a program that only links a library of TensorRT code
        opened = open_shared_object(path, elf, decisions)
        function = ctypes.CDLL(str(path)).main
    except (ElfError, OSError, RuntimeError, AttributeError) as error:
        raise CustomLibraryError(
            f"the program cannot be loaded: {error}",
            where=str(path),
            fix="compile it again: headrace compile --exe",
        ) from error
    for notice in decisions:
        print(notice, file=sys.stderr)
    for number in (signal.SIGINT, signal.SIGPIPE):  # the program's own, not Python's
        signal.signal(number, signal.SIG_DFL)
    argv = (ctypes.c_char_p * (len(words) + 1))(*(word.encode() for word in words), None)
    with collected_errors(PrintedErrors()):
        code = int(function(len(words), argv))
    del opened
    return code & 0xFF


def main() -> None:
    """Run the file that the first argument names."""
    try:
        code = run_program(Path(sys.argv[1]), sys.argv[2:])
    except HeadraceError as error:
        print(error, file=sys.stderr)
        code = MISUSED
    sys.stdout.flush()
    sys.exit(code)


if __name__ == "__main__":
    main()
