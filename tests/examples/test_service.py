"""The unit for systemd of examples/13_service and the container files fit the command."""

from __future__ import annotations

import json
import re
import shlex
from configparser import ConfigParser
from pathlib import Path

import pytest

from headrace.cli.serve import serve
from headrace.config import load_pipeline
from headrace.live.address import TOKEN, live_address

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples/13_service"
CONTAINER = (ROOT / "packaging/containers/cpu.Containerfile").read_text()
FLAVOURS = sorted((ROOT / "packaging/containers").glob("*.Containerfile"))


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
    assert given["inputs"] == ("pipeline.yml",)
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
    outputs = serve.make_context("serve", command("unit")[2:]).params["outs"]
    assert [str(output).startswith(f"{home}/") for output in outputs] == [True]
    pipeline = load_pipeline(FOLDER / "pipeline.yml")
    assert pipeline.sinks == ()


@pytest.mark.parametrize("flavour", FLAVOURS, ids=lambda path: path.stem)
def test_the_image_is_built_of_this_repository(flavour: Path) -> None:
    """By its name alone pip would install what others published under it."""
    text = flavour.read_text().replace("\\\n", "")
    copied = [x for line in re.findall(r"^COPY (?!--)(.+) /", text, re.M) for x in line.split()]
    assert "src" in copied
    # A pattern is of a file that may be there: hashes of the packages, when they were made.
    required = [name for name in copied if "[" not in name]
    assert [name for name in required if not (ROOT / name).exists()] == []
    needed = re.findall(
        r"^(?:readme|license-files) = (.+)$", (ROOT / "pyproject.toml").read_text(), re.M
    )
    assert {x for text in needed for x in re.findall(r'"(.+?)"', text)} <= set(copied)
    for line in re.findall(r"pip install ([^;&\n]+)", text):
        assert re.search(r"(^|['\" ])headrace", line) is None
        names = [x for x in shlex.split(line) if not x.startswith(("-", "/", "$"))]
        assert names == []


@pytest.mark.parametrize("flavour", FLAVOURS, ids=lambda path: path.stem)
def test_the_image_runs_without_root_and_says_how_it_is(flavour: Path) -> None:
    text = flavour.read_text()
    build, last = text.split("\nFROM ${BASE}")[1:]
    assert "AS build" in build
    assert "g++" not in last
    assert re.findall(r"^USER (\d+)$", last, re.M) == ["1000"]
    assert last.index("\nUSER ") < last.index("\nHEALTHCHECK ") < last.index("\nCMD ")
    name = re.search(r"podman build -t (\S+) -f (\S+) \.", text)
    assert name is not None
    assert ROOT / name[2] == flavour
