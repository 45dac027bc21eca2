"""Count the methods of TensorRT's C++ classes that the headers have: docs/cpp-methods.md.

    python scripts/tensorrt_methods.py            # print the page
    python scripts/tensorrt_methods.py --check    # compare it with the headers; 1 if it is old
    python scripts/tensorrt_methods.py --write    # bring it up to date

The table of methods is docs/_ext/tensorrt_methods.txt. A C++ compiler and nm are needed.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from docs._ext import tensorrt_methods  # noqa: E402

PAGE = ROOT / "docs" / "cpp-methods.md"


def main(arguments: list[str]) -> int:
    """Print, check or write the page; 1 if it differs from what the headers are."""
    if arguments not in ([], ["--check"], ["--write"]):
        print(__doc__, file=sys.stderr)
        return 2
    text = tensorrt_methods.page()
    if arguments == ["--write"]:
        PAGE.write_text(text, encoding="utf-8")
    elif not arguments:
        print(text)
    elif not PAGE.is_file() or PAGE.read_text("utf-8") != text:
        print(f"{PAGE} is not what the headers are: run it with --write", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
