"""Write a C++ header with the numbers of Python's enumerations; CMake runs it.

usage: native_numbers.py TARGET
"""

import ast
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src" / "headrace"
ENUMS = (  # file, class in Python, in C++, its type, and the name of the member KEPT
    ("config/enums.py", "ClusterMode", "Mode", "int", ""),
    ("infer/cluster.py", "Reason", "Reason", "std::uint8_t", "KEPT"),
    ("infer/attach.py", "DropReason", "Drop", "std::uint8_t", "ATTACHED"),
)


def numbers(path: Path, name: str) -> dict[str, int]:
    """Return the number of each member of an enumeration: the value, or the first of a tuple."""
    (found,) = (
        node
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and node.name == name
    )
    members = {}
    for node in found.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            value = ast.literal_eval(node.value)
            members[node.targets[0].id] = value[0] if isinstance(value, tuple) else value
    return members


def constant(member: str) -> str:
    """`TOP_K` as the C++ sources write it: `kTopK`."""
    return "k" + "".join(part.capitalize() for part in member.split("_"))


def main() -> None:
    lines = ["#pragma once", "#include <cstddef>", "#include <cstdint>", ""]
    lines += ["namespace headrace::cluster {", ""]
    for file, name, native, type_, kept in ENUMS:
        members = numbers(SOURCE / file, name)
        lines.append(f"enum {native} : {type_} {{")
        for member, number in members.items():
            lines.append(f"    {constant(kept if member == 'KEPT' else member)} = {number},")
        lines += ["};", f"constexpr std::size_t k{native}s = {max(members.values()) + 1};", ""]
    text = "\n".join([*lines, "}  // namespace headrace::cluster", ""])
    target = Path(sys.argv[1])
    # Written anew, it would have all that includes it compiled again.
    if not target.exists() or target.read_text() != text:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)


main()
