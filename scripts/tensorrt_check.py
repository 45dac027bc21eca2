"""Ask g++ about every place in `native/foreign/slots`, with public headers of TensorRT.

usage: tensorrt_check.py HEADERS [CUDA]

HEADERS has a folder a release, of any name, each the `include` of a tag of NVIDIA/TensorRT. CUDA
has a `cuda_runtime_api.h`; without it one is made that declares its handles. A pointer to a virtual
member function holds 1 + 8 * its place.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tensorrt_slots import LINES, Line, Slot, read

_HEADERS = ("NvInfer.h", "NvOnnxParser.h")
_START = """#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>
#define protected public
#define private public
%s
namespace nvinfer1 { namespace apiv {} }
using namespace nvinfer1;
using namespace nvinfer1::apiv;
using Dims32 = nvinfer1::Dims;
%s
template <class P> long place(P p) {
    long v[2];
    std::memcpy(v, &p, sizeof(v));
    return (v[0] - 1) / 8;
}
template <class... A> struct Of {
    template <class C, class R> static long plain(R (C::*p)(A...)) { return place(p); }
    template <class C, class R> static long constant(R (C::*p)(A...) const) { return place(p); }
};
int right, wrong;
void is(const char *what, long a, long b) {
    if (a == b) { ++right; return; }
    ++wrong;
    std::printf("%%s is at %%ld, not %%ld\\n", what, a, b);
}
int main() {
"""
_PLAIN_TOO = frozenset({"deserializeCudaEngine"})
"""Functions that are also there with other arguments and no place."""
_CUDA = "typedef struct CUstream_st *cudaStream_t;\ntypedef struct CUevent_st *cudaEvent_t;\n"


def version(text: str) -> tuple[int, ...]:
    """Make a release comparable: `8.6.1`, `10.16`."""
    return tuple(map(int, text.split(".")))[:3]


def release_of(headers: Path) -> str:
    """Read the release of a folder of headers, which its name need not tell."""
    text = "".join((p.read_text(errors="replace")) for p in sorted(headers.glob("NvInfer*.h")))
    found = dict(re.findall(r"#define (?:NV_TENSORRT|TRT)_(MAJOR|MINOR|PATCH)\w* (\d+)", text))
    return ".".join(found[part] for part in ("MAJOR", "MINOR", "PATCH"))


def line_of(release: str) -> Line:
    """Return the line that a release belongs to."""
    major = version(release)[0]
    return read(max(n for n in LINES if n <= max(major, 7)))


def rows(line: Line, release: str) -> list[tuple[str, Slot, int]]:
    """List class, function and place of what each class of a release adds or gives a body."""
    out: list[tuple[str, Slot, int]] = []
    for name, one in line.interfaces.items():
        plain, _, mark = name.partition("@")
        if (mark and mark != "v2" and version(mark) != version(release)) or (
            not mark and f"{name}@{release}" in line.interfaces
        ):
            continue
        if one.since and version(one.since) > version(release):
            continue
        own, place = {s.key for s in (*one.slots, *one.overrides)}, 0
        for slot in line.all_slots(name):
            there = not slot.since or version(slot.since) <= version(release)
            if there and slot.key in own:
                out.append((name if mark == "v2" else plain, slot, place))
            place += slot.places
    return out


def source(line: Line, release: str, headers: Path) -> str:
    """Write the program that asks."""
    there = [h for h in _HEADERS if (headers / h).exists()]
    text = "".join(p.read_text(errors="replace") for p in headers.glob("NvInfer*.h"))
    classes = set(re.findall(r"\w+", " ".join(re.findall(r"class([^;{]*)", text))))
    parser = "NvOnnxParser.h" in there
    dims = "" if line.number < 10 else "using Dims64 = nvinfer1::Dims64;"
    out = [_START % ("\n".join(f'#include "{h}"' for h in there), dims)]
    if line.number != 8:
        out[0] = out[0].replace("using Dims32 = nvinfer1::Dims;\n", "")
    names = Counter((name, slot.name) for name, slot, _ in rows(line, release))
    for name, slot, place in rows(line, release):
        if slot.name == "~" or (name.startswith("nvonnxparser::") and not parser):
            continue
        plain = name.removesuffix("@v2").split("::")[-1]
        if not name.startswith("nvonnxparser::") and plain not in classes:
            print(f"{release}: no class {plain}")
            continue
        known = f"nvinfer1::v_2_0::{plain}" if name.endswith("@v2") else name
        what, function = f"{name}::{slot.name}", f"&{known}::{slot.name}"
        if names[name, slot.name] == 1 and slot.name not in _PLAIN_TOO:
            # by its name alone: types have had other names, places have not
            out.append(f'    is("{what}", place({function}), {place});')
            continue
        types, how = ", ".join(slot.arguments), "constant" if slot.const else "plain"
        out.append(f'    is("{what}", Of<{types}>::{how}({function}), {place});')
    out.append(
        '    std::printf("%d right, %d wrong\\n", right, wrong);\n    return wrong != 0;\n}\n'
    )
    return "\n".join(out)


def check(release: str, headers: Path, cuda: Path, work: Path) -> tuple[bool, str]:
    """Return whether every place is right, and what the program says."""
    program = work / f"check-{release}"
    code = program.with_suffix(".cpp")
    code.write_text(source(line_of(release), release, headers))
    command = ["g++", "-std=c++14", "-w", "-O0", f"-I{headers}", f"-I{cuda}", str(code)]
    command += ["-o", str(program), "-Wl,--unresolved-symbols=ignore-all"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return False, done.stderr[:4000]
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    return done.returncode == 0, done.stdout.strip()


def main() -> int:
    """Check each release of the folder; 1 if a place is wrong."""
    headers, bad = Path(sys.argv[1]), 0
    with tempfile.TemporaryDirectory(prefix="headrace-slots-") as folder:
        work = Path(folder)
        (work / "cuda_runtime_api.h").write_text(_CUDA)
        cuda = Path(sys.argv[2]) if len(sys.argv) > 2 else work
        for one in sorted(p for p in headers.iterdir() if (p / "NvInfer.h").is_file()):
            release = release_of(one)
            good, text = check(release, one, cuda, work)
            bad += not good
            print(f"{one.name}: TensorRT {release}, {text}", flush=True)
    return int(bool(bad))


if __name__ == "__main__":
    raise SystemExit(main())
