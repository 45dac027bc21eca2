"""Sources that the tests do not bring along: checkouts in the folder HEADRACE_OUTSIDE."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def outside() -> Path:
    """The folder with checkouts of public repositories, each under its own name."""
    folder = os.environ.get("HEADRACE_OUTSIDE")
    if not folder:
        pytest.skip("no HEADRACE_OUTSIDE: see CONTRIBUTING.md")
    return Path(folder)


def checkout(outside: Path, name: str) -> Path:
    """The checkout of a repository; skips the test if it is not there."""
    folder = outside / name
    if not folder.is_dir():
        pytest.skip(f"{name} is not in {outside}")
    return folder


def need_broker() -> None:
    """Skip a test of messages where no MQTT server is installed."""
    if shutil.which("mosquitto") is None:
        pytest.skip("needs the server mosquitto")
