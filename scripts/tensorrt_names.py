"""Write docs/_ext/tensorrt_names.txt: the names in TensorRT's Python bindings, by release.

    python scripts/tensorrt_names.py CHECKOUT

CHECKOUT is a clone of NVIDIA/TensorRT with its tags. A line is a class, empty for the module, with
its names; `Name>=10.8<11.1` came with 10.8 and left with 11.1, of the releases in `TAGS`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

TAGS = {
    "8.6": "v8.6.1", "10.0": "v10.0.1", "10.3": "v10.3.0", "10.8": "v10.8.0",
    "10.13": "v10.13.3", "10.16": "v10.16", "11.1": "v11.1",
}  # fmt: skip
FILES = (
    "infer/pyCore", "infer/pyFoundationalTypes", "infer/pyGraph", "infer/pyInt8", "infer/pyPlugin",
    "infer/pyAlgorithmSelector", "parsers/pyOnnx", "parsers/pyCaffe", "parsers/pyUff",
)  # fmt: skip
TARGET = Path(__file__).parents[1] / "docs" / "_ext" / "tensorrt_names.txt"

_CLASS = re.compile(r'py::(class_|enum_)<[^;]*?>\s*(?:\w+)?\s*[({]\s*(\w+)\s*,\s*"(\w+)"')
_MEMBER = re.compile(r'(\bm)?\s*\.(def|value)\w*\(\s*"(\w+)"')
_OF_MODULE = re.compile(r'\bm\.(?:def|attr)\(\s*"(\w+)"')


def names_of(checkout: Path, tag: str) -> set[str]:
    """Read the names of a release: `Name` of the module, `Class.name` of a class."""
    found: set[str] = set()
    for file in FILES:
        done = subprocess.run(
            ["git", "-C", str(checkout), "show", f"{tag}:python/src/{file}.cpp"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            continue
        text = re.sub(r"//[^\n]*", "", done.stdout)
        found |= set(_OF_MODULE.findall(text))
        classes = list(_CLASS.finditer(text))
        ends = [*(c.start() for c in classes[1:]), len(text)]
        for match, end in zip(classes, ends, strict=True):
            kind, holder, name = match.groups()
            how = "value" if kind == "enum_" else "def"
            if holder == "m":
                found.add(name)
            calls = _MEMBER.findall(text[match.end() : end])
            members = {m for module, call, m in calls if call == how and not module}
            found |= {f"{name}.{m}" for m in members if not m.startswith("__")}
    return found


def main() -> None:
    """Write the file."""
    releases = list(TAGS)
    names = {release: names_of(Path(sys.argv[1]), tag) for release, tag in TAGS.items()}
    rows: dict[str, list[str]] = defaultdict(list)
    for name in sorted(set().union(*names.values())):
        have = [r for r in releases if name in names[r]]
        first, last = releases.index(have[0]), releases.index(have[-1])
        span = f">={have[0]}" if first else ""
        span += f"<{releases[last + 1]}" if last + 1 < len(releases) else ""
        owner, dot, member = name.partition(".")
        rows[owner if dot else ""].append((member or owner) + span)
    lines = [f"{owner}: {' '.join(found)}" for owner, found in sorted(rows.items())]
    TARGET.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
