"""Published deepstream-app and test5 configs of a folder: those that load, and why others do not.

Run by hand, over checkouts of public repositories:

    python -m tests.outside.application_configs FOLDER

Models and media that a config names need not be there: reading a config opens none of them.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from headrace.config import load_pipeline
from headrace.errors import ConfigError

_SUFFIXES = (".txt", ".yml", ".yaml")
_SOURCES = re.compile(rb"^\s*(\[source[0-9]+\]|\[source-list\]|source[0-9]*:\s*$)", re.MULTILINE)
_OTHERS = re.compile(
    rb"^\s*(\[?(application|tiled-display|primary-gie|sink0)\]?:?)\s*$", re.MULTILINE
)
_MOST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Read:
    """What became of a file.

    Attributes:
        path: of the file.
        refusal: its first line, where it was refused.
        codes: of the findings.
    """

    path: Path
    refusal: str
    codes: tuple[str, ...]


def configs(folder: Path) -> Iterator[Path]:
    """Files of a folder that look like configs of applications, each content once."""
    seen: set[bytes] = set()
    for path in sorted(folder.rglob("*")):
        if path.suffix not in _SUFFIXES or not path.is_file() or path.stat().st_size > _MOST_BYTES:
            continue
        data = path.read_bytes()
        kinds = {match[1] for match in _OTHERS.finditer(data)}
        digest = sha256(data).digest()
        if _SOURCES.search(data) and len(kinds) >= 2 and digest not in seen:
            seen.add(digest)
            yield path


def read(path: Path) -> Read:
    """Load one."""
    try:
        spec = load_pipeline(path)
    except ConfigError as error:
        return Read(path, str(error).partition("\n")[0], (error.finding.code,))
    return Read(path, "", tuple(finding.code for finding in spec.notices))


def main(folder: Path) -> None:
    """Print each refusal and the counts."""
    rows = [read(path) for path in configs(folder)]
    for row in rows:
        if row.refusal:
            print(f"{row.path.relative_to(folder)}: {row.refusal}")
    codes = Counter(code for row in rows for code in set(row.codes))
    print(f"{sum(not row.refusal for row in rows)} of {len(rows)} load; files with a finding:")
    for code, count in codes.most_common():
        print(f"  {code}: {count}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
