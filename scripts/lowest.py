"""Print the oldest versions that pyproject.toml allows, as constraints of pip.

python scripts/lowest.py > lowest.txt && pip install -c lowest.txt .
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path


def lowest(requirements: list[str]) -> list[str]:
    """Return `name==bound` of each requirement `name>=bound`.

    Raises:
        ValueError: one has no lower bound.
    """
    pins = []
    for requirement in requirements:
        match = re.fullmatch(r"([A-Za-z0-9_.-]+)(?:\[[^]]*\])?>=([0-9.]+)", requirement)
        if match is None:
            raise ValueError(f"{requirement!r} has no lower bound `name>=version`")
        pins.append(f"{match[1]}=={match[2]}")
    return pins


if __name__ == "__main__":
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    print(*lowest(project["dependencies"]), sep="\n")
