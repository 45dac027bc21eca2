"""Errors of compiler and linker, cut to the first reasons, with hints."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from headrace._core.errors import CustomLibraryError
from headrace._core.text import shortened
from headrace.custom.compile.toolchain import include_dir

SHOWN = 5
_LONGEST = 1000  # types that a parser has and shall have are long, and both are wanted

_BOX_HINT = (
    "the source is of generation 9.x (28-byte boxes): leave out --generation 6.x / "
    "HEADRACE_BOX_BYTES=24"
)
_OPENCV = (
    "it belongs to OpenCV, in Debian and Ubuntu the package libopencv-dev: apt install "
    "libopencv-dev, then add -I /usr/include/opencv4, and -l opencv_core and those that it calls"
)
_PIPELINE = (
    "it belongs to GStreamer or the pipeline around the model; no parser needs it: leave it out of "
    "the source, or the file out of the library"
)
_APPLICATION = (
    "it belongs to the application around the model; a library of its own (a pad probe, a plugin) "
    "links it: -l nvds_meta, and GStreamer's headers by --flag \"$(pkg-config --cflags "
    'gstreamer-1.0)"'
)
_GPU_CODE = (
    "this is code for the GPU; if parsers do not need the file, leave it out: headrace's headers "
    "have what parsers, network builders and plugins use on a CPU"
)
_FORGOTTEN = (
    "the source forgets #include <cuda_runtime_api.h>: try --flag '-include cuda_runtime_api.h'"
)
_ENGINE = (
    "headrace's headers do not have this part of TensorRT's interface for that release "
    "(NV_TENSORRT_MAJOR: 5, 6, 7, 8 or 10); a file that only builds an engine is not needed: "
    "headrace builds it from onnx-file"
)

# What a message says -> what to do. The first that fits a message gives its hint.
_HINTS: tuple[tuple[str, str], ...] = (
    (r"has no member named 'rotation_angle'", _BOX_HINT),
    (r"opencv2?/\S*: No such file|^nothing defines cv::", _OPENCV),
    (r"(thrust|cub|cuda|cooperative_groups)/\S*: No such file", _GPU_CODE),
    (r"nvtx3?/\S*: No such file", _GPU_CODE),
    (
        r"\b(cublas|cudnn|curand|cufft|cusolver|cusparse|nccl)\w*\.h: No such file",
        "it belongs to the CUDA toolkit or a library beside it: install that and name the folder "
        "by -I; headrace includes says what there is for the CPU",
    ),
    (r"\b(gst/\S*|glib\S*|nvbuf\w*|gst-?nv\w*|nvds(?!infer|parse)\w*)\.h: No such file", _PIPELINE),
    (r"'(nvds_\w+|gst_\w+|g_\w+)' was not declared", _PIPELINE),
    (r"^nothing defines (nvds_\w+|gst_nv\w+|gst_buffer_\w*nvds\w*|NvBufSurface\w+)$", _APPLICATION),
    (
        r"(\S+\.h\w*): No such file",
        "name the folder that it is in: -I <folder>, or headrace includes for what headrace has",
    ),
    (r"\[-fpermissive\]", "older compilers let this pass: try --flag -fpermissive"),
    (r"\[-Wnarrowing\]|narrowing conversion", "try --flag -Wno-narrowing"),
    (
        r"ISO C\+\+17 does not allow|'(auto_ptr|random_shuffle|unary_function)' is not a member",
        "the source is of an older C++: try --std gnu++11",
    ),
    (
        r"does not have the parameters that|with 'C' linkage",
        "see headrace's nvdsinfer_custom_impl.h",
    ),
    (
        r"^nothing defines nv(infer1|onnxparser|caffeparser1|uffparser)::",
        "what headrace's headers declare they define: another file of these sources declares it; "
        "compile the source that defines it, too",
    ),
    (
        r"^nothing defines (cublas|cudnn|curand)(Lt)?[A-Z]",
        "it belongs to the CUDA toolkit, which lacks it here: install libcublas or libcudnn, then "
        "-l cublas or -l cudnn; --cuda host takes headrace's own, on host memory",
    ),
    (
        r"^nothing defines [^(]+\(",
        "another file of these sources, or a library, defines it: compile it, too, or -l <library>",
    ),
    (r"nvinfer1|nvonnxparser|nvcaffeparser|nvuffparser", _ENGINE),
    (r"'__global__'|<<<|blockIdx|threadIdx|'cuda\w+'", _GPU_CODE),
    (
        r"'(memcpy|memset|strdup|strlen|strcmp)' was not declared",
        "the source forgets #include <cstring>: try --flag '-include cstring'",
    ),
    (r"'(cout|cerr|endl)' ", "the source forgets #include <iostream>: --flag '-include iostream'"),
    (
        r"^nothing defines main$",
        "no source defines main(): --exe makes programs; leave it out for a library",
    ),
    (r"undefined reference to .*asan|undefined reference to .*ubsan", "is libasan installed?"),
)


def compile_failed(
    output: str, source: Path | None, command: str, sources: Sequence[Path]
) -> CustomLibraryError:
    """Make the error for a compiler (of `source`) or linker (None) that failed.

    Args:
        output: its standard error, in English.
        source: the file that it compiled; None for the linker.
        command: the command line.
        sources: all sources of the library; files beside them may define what is missing.
    """
    lines = output.splitlines()
    errors = [line.strip() for line in lines if re.search(r"\b(fatal )?error:", line)]
    undefined = undefined_in(output)
    fix: list[str] = []
    known: set[str] = set()
    if undefined:
        errors = [f"nothing defines {name}" for name in undefined]
        for name in undefined[:SHOWN]:
            if beside := _defined_beside(name, sources):
                fix += beside
                known.add(f"nothing defines {name}")
        errors += [f"(and {len(undefined) - SHOWN} more)"] if len(undefined) > SHOWN else []
    twice = dict.fromkeys(re.findall(r"multiple definition of [`'](.+?)'", output))
    if twice and not undefined:
        errors = [f"{name} is defined twice" for name in twice]
        fix.append("two of the files define it: leave one of them out")
    if missing := re.search(r"cannot find -l(\S+?):? ", output + " "):
        name = missing[1].rstrip(":")
        other = "leave it out if no parser needs it"
        other = _OPENCV if name.startswith("opencv_") else other
        fix.append(f"-l{name} is not installed; {other}")
    for message in errors or lines[-SHOWN:]:
        if message not in known and (hint := _hint(message)):
            fix.append(hint)
    if _GPU_CODE in fix:  # what else it lacks does not matter then
        fix = [hint for hint in fix if hint != _FORGOTTEN]
    shown = list(dict.fromkeys(shortened(e, _LONGEST) for e in errors or lines[-SHOWN:]))[:SHOWN]
    macros = {} if undefined else _expansions(lines)
    shown = [text for e in shown for text in (e, *macros.get(e, ()))]
    return CustomLibraryError(
        ("the source does not compile" if source else "the library does not link")
        + (":\n    " + "\n    ".join(shown) if shown else ""),
        where=str(source) if source else None,
        fix=[*dict.fromkeys(fix), f"the command was: {command}"],
    )


def undefined_in(output: str) -> list[str]:
    """List undefined names in the output of a linker."""
    found = re.findall(r"(?:undefined reference to|required symbol) [`'](.+?)'", output)
    return list(dict.fromkeys(found))


def _expansions(lines: Sequence[str]) -> dict[str, list[str]]:
    """Errors inside of macros -> where the outermost macro stands in the source, and how."""
    expansions: dict[str, list[str]] = {}
    error = ""
    for i, line in enumerate(lines):
        if re.search(r"\b(error|warning):", line):
            error = shortened(line.strip(), _LONGEST) if re.search(r"\berror:", line) else ""
        note = re.match(r"(\S.*?:\d+):\d+: note: (in expansion of macro .*)", line)
        if note and error:
            code = re.match(r"\s*\d+ \| (.*)", lines[i + 1]) if i + 1 < len(lines) else None
            said = f": {code[1].strip()}" if code else ""
            expansions[error] = [shortened(f"  {note[2]} at {note[1]}{said}", _LONGEST)]
    return expansions


def _hint(message: str) -> str | None:
    if asked := re.match(r"(\S[^:]*):(\d+):\d+: error: #error", message):
        return _macros_asked(Path(asked[1]), int(asked[2]))
    hint = next((hint for pattern, hint in _HINTS if re.search(pattern, message)), None)
    name = re.search(r"'(cuda\w+)'", message)
    if hint == _GPU_CODE and name and "No such file" not in message and _runtime_has(name[1]):
        return _FORGOTTEN
    return hint


def _macros_asked(header: Path, line: int) -> str | None:
    """The macros one of which a header asks for by an #error of that line."""
    try:
        text = "\n".join(header.read_text("utf-8", "replace").splitlines()[: line - 1])
    except OSError:
        return None
    last = re.split(r"^\s*#\s*(?=if|el|endif)", text.replace("\\\n", " "), flags=re.M)[-1]
    condition = re.match(r"(?:ifndef\s+(\w+)|if\s*!(.*))", last)
    if condition is None:
        return None
    names = [condition[1]] if condition[1] else re.findall(r"defined\s*\(?\s*(\w+)", condition[2])
    return f"the header asks for one of these: -D {', -D '.join(names)}" if names else None


def _runtime_has(name: str) -> bool:
    """Whether headrace's header of the CUDA runtime has it; the source lacks that include then."""
    header = include_dir() / "cuda_runtime_api.h"
    return re.search(rf"\b{name}\b", header.read_text()) is not None


def _defined_beside(name: str, sources: Sequence[Path]) -> list[str]:
    """Source files beside the given ones that define a function of that name."""
    function = re.split(r"::| ", re.sub(r"(<[^()]*>)?\(.*", "", name))[-1]
    if not function.isidentifier():
        return []
    defines = re.compile(rf"\b{function}\s*\([^;{{}}]*\)[^;{{}}]*\{{")
    paths = {s.resolve() for s in sources}
    for folder in dict.fromkeys(s.resolve().parent for s in sources):
        for path in sorted(folder.glob("*.c*")):
            if path.resolve() in paths or path.suffix not in (".cpp", ".cc", ".cxx", ".cu"):
                continue
            if defines.search(path.read_text("utf-8", "replace")):
                return [f"{path.name} beside it defines {function}: compile it too"]
    return []
