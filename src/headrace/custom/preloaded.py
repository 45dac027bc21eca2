"""Plugin libraries that LD_PRELOAD brings, as is usual beside a parser library.

They are loaded before the interpreter, so that what they register is heard by nobody. The command
starts itself again without them and loads them as any library of plugins.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from headrace.binary.tensorrt_line import file_brings_plugins
from headrace.plugins.registry import NAMED_LIBRARIES

PRELOAD = "LD_PRELOAD"


def preloaded_plugins() -> list[Path]:
    """List the libraries of plugins that are preloaded into this process."""
    names = re.split("[: ]+", os.environ.get(PRELOAD, ""))
    paths = [Path(name).absolute() for name in names if "/" in name]
    return [path for path in paths if path.is_file() and file_brings_plugins(path)]


def start_again_with_plugins() -> None:
    """Start the command again if plugin libraries are preloaded; does not return then."""
    libraries = preloaded_plugins()
    if not libraries:
        return
    rest = [
        name
        for name in re.split("[: ]+", os.environ[PRELOAD])
        if name and Path(name).absolute() not in libraries
    ]
    environment = dict(os.environ)
    environment[PRELOAD] = ":".join(rest)
    environment[NAMED_LIBRARIES] = ":".join(
        [*filter(None, [os.environ.get(NAMED_LIBRARIES)]), *map(str, libraries)]
    )
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)


def preload_hints() -> list[str]:
    """List advice about libraries that are preloaded into another program than the command."""
    return [
        f"{path} is preloaded ({PRELOAD}) and registered its plugins before headrace was there: "
        f"leave it out of {PRELOAD} and write {NAMED_LIBRARIES}={path}, or load it by "
        "get_plugin_registry().load_library"
        for path in preloaded_plugins()
    ]
