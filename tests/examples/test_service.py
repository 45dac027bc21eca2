"""The unit for systemd and the container file of examples/13_service fit the command."""

from __future__ import annotations

import json
import re
import shlex
from configparser import ConfigParser
from pathlib import Path

import pytest

from headrace.cli.serve import serve
from headrace.live.address import TOKEN, live_address

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples/13_service"
CONTAINER = (FOLDER / "Containerfile").read_text()


def unit() -> dict[str, str]:
    parser = ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(FOLDER / "headrace.service")
    return dict(parser["Service"])


def command(of: str) -> list[str]:
    if of == "unit":
        return shlex.split(unit()["ExecStart"])
    return list(json.loads(CONTAINER.partition("\nCMD ")[2]))


@pytest.mark.parametrize("of", ["unit", "container"])
def test_the_command_is_taken(of: str) -> None:
    program, name, *arguments = command(of)
    assert (Path(program).name, name) == ("headrace", "serve")
    given = serve.make_context("serve", arguments).params
    assert given["configs"] == ("pipeline.yml",)
    address = live_address(given["listen"])
    assert address.is_local == (of == "unit"), "a unit has a token only where its user sets one"
    assert str(address.port) == re.findall(r"^EXPOSE (\d+)$", CONTAINER, re.M)[0]
    assert f"-p {address.port}:{address.port} -e {TOKEN}=" in CONTAINER


def test_the_unit_writes_only_where_it_may() -> None:
    found = unit()
    assert found["ProtectSystem"] == "strict"
    home = f"/var/lib/{found['StateDirectory']}"
    assert dict(shlex.split(x)[0].split("=") for x in found["Environment"].split()) == {
        "XDG_STATE_HOME": home,
        "HOME": home,
    }
    assert command("unit")[0].startswith(found["WorkingDirectory"] + "/")


def test_the_image_is_built_of_this_repository() -> None:
    """By its name alone pip would install what somebody else published under it."""
    copied = [
        x for line in re.findall(r"^COPY (?!--)(.+) /", CONTAINER, re.M) for x in line.split()
    ]
    assert "src" in copied
    # A pattern is of a file that may be there: hashes of the packages, when they were made.
    required = [name for name in copied if "[" not in name]
    assert [name for name in required if not (ROOT / name).exists()] == []
    needed = re.findall(
        r"^(?:readme|license-files) = (.+)$", (ROOT / "pyproject.toml").read_text(), re.M
    )
    assert {x for text in needed for x in re.findall(r'"(.+?)"', text)} <= set(copied)
    for line in re.findall(r"pip install (.+)", CONTAINER):
        assert re.search(r"(^|['\" ])headrace", line) is None
        assert "/wheels/headrace-*.whl" in line or "-r /wheels/constraints.txt" in line
