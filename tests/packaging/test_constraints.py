"""Constraints of containers: one line for each package, with its hash; one without is refused."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "constraints.py"
lines = runpy.run_path(str(SCRIPT))["lines"]


def item(name: str, version: str, **hashes: str) -> dict[str, object]:
    return {
        "metadata": {"name": name, "version": version},
        "download_info": {"archive_info": {"hashes": hashes}},
    }


def test_each_package_has_its_version_and_hash() -> None:
    digest = "ab" * 32
    data = {
        "install": [item("PyYAML", "6.0.3", sha256=digest), item("av", "18.1.0", sha256=digest)]
    }
    data["install"].append(item("Headrace", "0.1.0"))
    assert lines(data) == [
        f"av==18.1.0 --hash=sha256:{digest}",
        f"pyyaml==6.0.3 --hash=sha256:{digest}",
    ]


def test_a_package_without_a_hash_is_refused() -> None:
    for hashes in ({}, {"md5": "0"}, {"sha256": "short"}):
        with pytest.raises(ValueError, match="numpy comes without a SHA-256"):
            lines({"install": [item("numpy", "2.4.0", **hashes)]})


@pytest.mark.slow
def test_pip_takes_the_file(tmp_path: Path) -> None:
    digest = "ab" * 32
    (tmp_path / "c.txt").write_text(
        "\n".join(lines({"install": [item("numpy", "2.4.0", sha256=digest)]}))
    )
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--no-index"]
    command += [
        "--dry-run",
        "--ignore-installed",
        "--require-hashes",
        "-r",
        str(tmp_path / "c.txt"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "numpy==2.4.0" in done.stderr  # it looked for it: there is no index
    assert "hash" not in done.stderr.lower()
