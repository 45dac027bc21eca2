"""The service of examples/13_service, killed again and again: `python -m tests.live.restarts`.

It runs the command of the systemd unit in a copy of the example, with several outputs of each kind,
and kills it at random moments: SIGKILL, SIGTERM, and SIGKILL with the last page of each growing
file cut off, as a power cut does. After each life it reads everything that the earlier ones left;
what was there must be there again, and every `.part` finished or renamed. `--disk FOLDER` (a small
tmpfs) holds one output of each kind, and is filled and emptied between the kills.
"""

from __future__ import annotations

import argparse
import configparser
import hashlib
import os
import random
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from headrace.media.sinks.series import PART, UNFINISHED, files_of
from headrace.media.sinks.whole_video import whole_matroska, whole_mp4
from tests.copies import copied_example

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples/13_service"
NAMES = ("found.jsonl", "events.jsonl", "rec.mp4", "rec.mkv", "rows.parquet", "rows.arrow")
_PAGE = 4096
_READY_S = 60.0
_TOLD_S = 15.0  # of a full disk, on a busy machine, too
_BALLAST = "ballast"


def outputs(folder: Path, several: int) -> list[str]:
    """The outputs, `several` of each kind."""
    names: list[str] = []
    for number in range(several):
        place = folder / str(number)
        rotated = "?rotate=2s" if number % 2 else ""
        names += [
            f"{place}/found.jsonl{'?size=100k' if number % 2 else ''}",
            f"events+file://{place}/events.jsonl?every=frame&spool={folder}/spool{number}",
            *(f"{place}/{name}{rotated}" for name in NAMES[2:]),
        ]
    return names


def unit_command() -> list[str]:
    """The arguments of the unit's ExecStart behind the program, without its output."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(EXAMPLE / "headrace.service")
    arguments = shlex.split(parser["Service"]["ExecStart"])[1:]
    at = arguments.index("-o")
    return arguments[:at] + arguments[at + 2 :]


def prepare(folder: Path, outs: list[str], source: Path) -> Path:
    """Copy the example and the model that it names; returns the folder to run it in."""
    for name in ("13_service", "conveyor"):
        copied_example(name, folder / name)
    work = folder / "13_service"
    text = (work / "pipeline.yml").read_text()
    sinks = "".join(f"  - {{uri: '{out}'}}\n" if "://" in out else f"  - '{out}'\n" for out in outs)
    sources = f"sources:\n  - {{uri: {source}, loop: true}}\n"
    (work / "pipeline.yml").write_text(f"{text}{sources}sinks:\n{sinks}")
    return work


@dataclass
class Kept:
    """Facts about the files that an output has left."""

    lines: dict[Path, list[bytes]] = field(default_factory=dict)
    finished: dict[Path, str] = field(default_factory=dict)
    parts: dict[Path, int] = field(default_factory=dict)  # rows or frames that can be read


def look(place: Path) -> Kept:
    """Read every output of a folder."""
    kept = Kept()
    for name in NAMES:
        for _, path in files_of(place / name):
            if name.endswith(".jsonl"):
                whole = path.read_bytes().rstrip(b"\0").rpartition(b"\n")[0]
                kept.lines[path] = whole.split(b"\n") if whole else []
            elif path.name.endswith(PART):
                kept.parts[path] = count_of(path)
            elif UNFINISHED not in path.name:
                kept.finished[path] = hashlib.sha256(path.read_bytes()).hexdigest()
    return kept


def count_of(path: Path) -> int:
    """Rows or frames that a file holds, finished or not."""
    kind = Path(path.name.removesuffix(PART)).suffix
    part = path.name.endswith(PART)
    if kind in (".mp4", ".mkv") and part:
        with path.open("rb") as file:
            return (whole_matroska if kind == ".mkv" else whole_mp4)(file)[1]
    if kind in (".mp4", ".mkv"):
        from headrace import open_source

        with open_source(str(path)) as source:
            return sum(1 for _ in source)
    if part:
        rows = 0
        with suppress(pa.ArrowException, OSError, EOFError, StopIteration):
            reader = pa.ipc.open_stream(path.open("rb"))
            while True:
                rows += reader.read_next_batch().num_rows
        return rows
    if kind == ".parquet":
        return int(pq.read_metadata(path).num_rows)
    return int(pa.ipc.open_file(path).read_all().num_rows)


def missing(before: Kept, after: Kept) -> list[str]:
    """What an earlier life left and is not there any more, in words."""
    faults = []
    for path, lines in before.lines.items():
        if after.lines.get(path, [])[: len(lines)] != lines:
            faults.append(f"{path}: lines are missing")
    for path, digest in before.finished.items():
        if after.finished.get(path) != digest:
            faults.append(f"{path}: it was changed or removed")
    for part, count in before.parts.items():
        target = part.with_name(part.name.removesuffix(PART))
        if count and (not target.exists() or count_of(target) < count):
            found = count_of(target) if target.exists() else 0
            faults.append(f"{target}: {found} of {count} rows or frames")
    return faults


def cut_last_pages(place: Path, chance: random.Random) -> None:
    """Cut up to a page off the files that a power cut would have caught."""
    growing = [path for _, path in files_of(place / "found.jsonl")][-1:]
    growing += [place / "events.jsonl", *place.glob(f"*{PART}")]
    for path in growing:
        with suppress(FileNotFoundError):
            os.truncate(path, max(0, path.stat().st_size - chance.randint(1, _PAGE)))


class Life:
    """One run of the service."""

    def __init__(self, work: Path, log: Path) -> None:
        arguments = unit_command()
        arguments[arguments.index("--listen") + 1] = "127.0.0.1:0"
        self.log = log
        with log.open("wb") as stream:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "headrace", *arguments, "--threads", "1"],
                cwd=work, stderr=stream, stdout=subprocess.DEVNULL,
            )  # fmt: skip

    def wait_until_ready(self) -> None:
        """Wait until it listens."""
        if not self.says("listening", _READY_S):
            raise SystemExit(f"the service did not start:\n{self.log.read_text()}")

    def says(self, word: str, within_s: float) -> bool:
        """Wait until its log has a word; False if it ends before, or does not say it in time."""
        end = time.monotonic() + within_s
        while f'"{word}"' not in self.log.read_text():
            if self.process.poll() is not None or time.monotonic() > end:
                return False
            time.sleep(0.05)
        return True

    def kill(self, number: int) -> int:
        """End it by a signal; returns its exit code."""
        self.process.send_signal(number)
        return self.process.wait(60)


def fill(disk: Path) -> None:
    """Fill a disk."""
    with suppress(OSError), (disk / _BALLAST).open("ab") as file:
        while True:
            file.write(bytes(1 << 16))
            file.flush()


def main(arguments: list[str] | None = None) -> int:
    """Kill the service so many times; returns 1 if something is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--several", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--disk", type=Path)
    parser.add_argument("--source", type=Path, default=ROOT / "examples/conveyor/conveyor.mp4")
    given = parser.parse_args(arguments)
    chance = random.Random(given.seed)
    faults: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        outs = outputs(folder / "out", given.several)
        places = [folder / "out" / str(number) for number in range(given.several)]
        if given.disk is not None:
            outs += [str(given.disk / out) for out in ("found.jsonl", "rec.mp4", "rows.parquet")]
            places.append(given.disk)
        work = prepare(folder, outs, given.source)
        before = [look(place) for place in places]
        full = back = slow = 0
        for number in range(given.times):
            life = Life(work, folder / "log")
            life.wait_until_ready()
            time.sleep(chance.uniform(0.0, 4.0))
            new: list[str] = []
            if given.disk is not None and number % 3 == 0:
                fill(given.disk)
                if not life.says("output-away", _TOLD_S):
                    new.append(f"a full disk was not told:\n{life.log.read_text()[-2000:]}")
                (given.disk / _BALLAST).unlink()
                time.sleep(chance.uniform(0.0, 5.0))
            how = chance.choice(("kill", "term", "cut"))
            code = life.kill(signal.SIGTERM if how == "term" else signal.SIGKILL)
            log = life.log.read_text()
            full, back = full + ("output-away" in log), back + ("output-lost" in log)
            late = "thread-left" in log  # a busy machine: the next life finishes the files
            slow += late
            if how == "term" and code and not late:
                new.append(f"exit code {code}:\n{log[-2000:]}")
            after = [look(place) for place in places]
            if how == "term" and not late:
                new += [f"{part}: it was left" for kept in after for part in kept.parts]
            for a, b in zip(before, after, strict=True):
                new += missing(a, b)
            print(*(f"life {number + 1} ({how}): {text}\n" for text in new), sep="", end="")
            faults += new
            if how == "cut":
                for place in places:
                    cut_last_pages(place, chance)
                after = [look(place) for place in places]
            before = after
            lines = sum(len(rows) for kept in after for rows in kept.lines.values())
            files = sum(len(kept.finished) for kept in after)
            print(f"{number + 1}: {how}: {lines} lines, {files} files; {len(faults)} faults",
                  flush=True)  # fmt: skip
    print(f"{given.times} lives; the disk was full in {full}, back in {back}; {slow} ended late")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
