"""Print the oldest versions that pyproject.toml allows, as constraints of pip.

python scripts/lowest.py > lowest.txt && pip install -c lowest.txt '.[live,mqtt]'

Those of the extras are among them, so that tests hold their bounds too.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path

LEFT_OUT = {
    "gst": "a package of this repository",
    "ocr": "installed without its dependencies, which bring another OpenCV",
    "tensorrt": "needs a GPU",
    "tracking": "installed without its dependencies, which bring another OpenCV",
    "train": "gigabytes, and no test uses it",
}
"""Extras whose oldest versions no test tries, and why."""


def lowest(requirements: Iterable[str]) -> list[str]:
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
    extras = project["optional-dependencies"].items()
    more = [r for extra, requirements in extras if extra not in LEFT_OUT for r in requirements]
    print(*lowest([*project["dependencies"], *more]), sep="\n")
