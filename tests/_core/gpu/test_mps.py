"""NVIDIA's MPS, with a control program that stands in."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headrace._core.gpu import mps

CONTROL = """#!/bin/sh
echo "$@ $(if [ $# = 0 ]; then cat; fi)" >> "$CALLS"
{more}
"""
SHARE = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"
LISTENS = '[ "$1" = -d ] && touch "$CUDA_MPS_PIPE_DIRECTORY/control"; exit 0'


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with a GPU's driver, no daemon, and a PATH of its own."""
    monkeypatch.setattr(mps, "_DRIVER", tmp_path)
    monkeypatch.setattr(mps, "_USUAL", str(tmp_path / "nobody-listens"))
    monkeypatch.setattr(mps, "_PLACES", ())
    monkeypatch.delenv("CUDA_MPS_PIPE_DIRECTORY", raising=False)
    monkeypatch.delenv(SHARE, raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    return tmp_path


def install(machine: Path, more: str) -> None:
    program = machine / "nvidia-cuda-mps-control"
    program.write_text(CONTROL.format(more=more))
    program.chmod(0o755)


def calls(machine: Path) -> list[str]:
    path = machine / "calls"
    return path.read_text().splitlines() if path.exists() else []


def test_a_daemon_runs_inside_the_block_alone(machine: Path) -> None:
    install(machine, LISTENS)
    with mps.kernels_at_once(4) as notices:
        assert notices == []
        folder = Path(os.environ["CUDA_MPS_PIPE_DIRECTORY"])
        assert (folder / "control").exists()
        assert calls(machine) == ["-d "]
    assert calls(machine) == ["-d ", " quit"]
    assert "CUDA_MPS_PIPE_DIRECTORY" not in os.environ
    assert not folder.exists()


def test_it_ends_where_the_block_fails(machine: Path) -> None:
    install(machine, LISTENS)
    with pytest.raises(ZeroDivisionError), mps.kernels_at_once(4):
        raise ZeroDivisionError
    assert calls(machine) == ["-d ", " quit"]


@pytest.mark.parametrize("named", [True, False])
def test_one_that_runs_already_is_left_alone(
    machine: Path, monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    install(machine, LISTENS)
    (machine / "control").touch()
    if named:
        monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", str(machine))
    else:
        monkeypatch.setattr(mps, "_USUAL", str(machine))
    with mps.kernels_at_once(4) as notices:
        assert notices == []
    assert calls(machine) == []


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (None, "nvidia-cuda-mps-control is not there"),
        ("echo 'An instance is there' >&2; exit 1", "control: An instance is there"),
        ("exit 3", "exit status 3"),
    ],
)
def test_what_stands_in_the_way_is_said(
    machine: Path, monkeypatch: pytest.MonkeyPatch, more: str | None, reason: str
) -> None:
    if more is None:
        monkeypatch.setenv("PATH", str(machine))  # the driver may have put one into /usr/bin
    else:
        install(machine, more)
    with mps.kernels_at_once(4) as (notice,):
        assert reason in notice.sentence
        assert notice.code == "gpu-turns"
        assert "CUDA_MPS_PIPE_DIRECTORY" not in os.environ


def test_nothing_is_said_without_a_gpu(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mps, "_DRIVER", machine / "no-driver")
    with mps.kernels_at_once(4) as notices:
        assert notices == []
    assert calls(machine) == []


@pytest.mark.parametrize(
    ("processes", "asked", "share"), [(1, "", "100"), (4, "", "50"), (6, "", "33"), (4, "70", "70")]
)
def test_a_process_may_use_twice_its_share(
    machine: Path, monkeypatch: pytest.MonkeyPatch, processes: int, asked: str, share: str
) -> None:
    install(machine, LISTENS)
    if asked:
        monkeypatch.setenv(SHARE, asked)
    with mps.kernels_at_once(processes):
        assert os.environ[SHARE] == share
    assert os.environ.get(SHARE, "") == asked
