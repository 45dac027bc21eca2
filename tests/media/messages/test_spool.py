"""A spool loses what was damaged and nothing else, names it once, and always comes to an end."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.errors import MediaError
from headrace.media.messages.records import records
from headrace.media.messages.spool import Spool

Part = tuple[Path, int, int, bytes]  # file, from, to, message


def _parts(folder: Path) -> list[Part]:
    parts: list[Part] = []
    for path in sorted(folder.glob("*.seg")):
        descriptor = os.open(path, os.O_RDONLY)
        found = records(descriptor, 0, path.stat().st_size)
        parts += [(path, r.start, r.end, r.message) for r in found]
        os.close(descriptor)
    return parts


def _in_record(
    change: Callable[[random.Random, bytearray, int, int], None],
) -> Callable[..., set[bytes]]:
    def damage(rng: random.Random, folder: Path, waiting: list[bytes]) -> set[bytes]:
        path, start, end, message = rng.choice([p for p in _parts(folder) if p[3] in waiting])
        data = bytearray(path.read_bytes())
        change(rng, data, start, end)
        path.write_bytes(data)
        return {message}

    return damage


def _flip(rng: random.Random, data: bytearray, start: int, end: int) -> None:
    data[rng.randrange(start, end)] ^= 1 << rng.randrange(8)


def _overwrite(rng: random.Random, data: bytearray, start: int, end: int) -> None:
    data[start:end] = rng.randbytes(end - start) if rng.random() < 0.5 else bytes(end - start)


def _huge(rng: random.Random, data: bytearray, start: int, end: int) -> None:
    data[start + 4 : start + 8] = b"\xff" * 4


def _delete(rng: random.Random, data: bytearray, start: int, end: int) -> None:
    first = rng.randrange(start, end)
    del data[first : rng.randint(first + 1, end)]


def _insert(rng: random.Random, data: bytearray, start: int, end: int) -> None:
    at = rng.randrange(start + 1, end)
    data[at:at] = rng.randbytes(rng.randint(1, 50))


def _anywhere(rng: random.Random, folder: Path, waiting: list[bytes]) -> set[bytes]:
    """Some bytes at any place: over a boundary they are bytes of two records, and cost both."""
    parts = _parts(folder)
    path, _, size, _ = rng.choice([p for p in parts if p[3] in waiting])
    boundary = rng.choice([end for p, _, end, _ in parts if p == path])
    at = boundary - 2 if rng.random() < 0.5 else rng.randrange(size)
    data = bytearray(path.read_bytes())
    count = min(4, len(data) - at)
    data[at : at + count] = bytes(byte ^ rng.randint(1, 255) for byte in data[at : at + count])
    path.write_bytes(data)
    touched = [p for p in parts if p[0] == path and p[1] < at + count and p[2] > at]
    return {message for _, _, _, message in touched if message in waiting}


def _zeros(rng: random.Random, folder: Path, _: list[bytes]) -> set[bytes]:
    with rng.choice(sorted(folder.glob("*.seg"))).open("ab") as file:
        file.write(bytes(rng.randint(1, 9000)))
    return set()


def _truncate(rng: random.Random, folder: Path, waiting: list[bytes]) -> set[bytes]:
    path = rng.choice(sorted(folder.glob("*.seg")))
    size = rng.randint(0, path.stat().st_size)
    lost = {m for p, _, end, m in _parts(folder) if p == path and end > size and m in waiting}
    os.truncate(path, size)
    return lost


def _remove(rng: random.Random, folder: Path, waiting: list[bytes]) -> set[bytes]:
    path = rng.choice(sorted(folder.glob("*.seg")))
    lost = {m for p, _, _, m in _parts(folder) if p == path and m in waiting}
    path.unlink()
    return lost


def _foreign(rng: random.Random, folder: Path, _: list[bytes]) -> set[bytes]:
    name = rng.choice(["note.txt", "0000000000000003.seg", f"{'9' * 20}.seg", "x.seg"])
    (folder / name).write_bytes(rng.randbytes(3000))
    return set()


def _link(rng: random.Random, folder: Path, _: list[bytes]) -> set[bytes]:
    target = rng.choice(["/etc/passwd", "/dev/zero", "nowhere", next(folder.glob("*.seg"))])
    (folder / rng.choice(["3.seg", f"{'9' * 20}.seg", "x.seg"])).symlink_to(target)
    return set()


def _copy(rng: random.Random, folder: Path, _: list[bytes]) -> set[bytes]:
    shutil.copy(rng.choice(sorted(folder.glob("*.seg"))), folder / "9.seg")
    return set()


def _cursor(rng: random.Random, folder: Path, _: list[bytes]) -> set[bytes]:
    data = bytearray((folder / "cursor").read_bytes())
    data[rng.randrange(len(data))] ^= 255
    (folder / "cursor").write_bytes(data)
    return set()


DAMAGES = [
    *map(_in_record, (_flip, _overwrite, _huge, _delete, _insert)),
    _anywhere, _zeros, _truncate, _remove, _foreign, _link, _copy, _cursor,
]  # fmt: skip


def _drained(spool: Spool) -> list[bytes]:
    got: list[bytes] = []
    while batch := spool.peek(7):
        got += [message for message, _ in batch]
        spool.ack()
    return got


def _random_damage(seed: int, folder: Path) -> None:
    rng = random.Random(seed)
    made: list[bytes] = []
    for _ in range(rng.randint(1, 3)):
        spool = Spool(folder, segment_bytes=600)
        for _ in range(rng.randint(1, 30)):
            made.append(b'{"n":%d,"x":"%s"}' % (len(made), b"x" * rng.randint(0, 120)))
            spool.append(made[-1])
        spool.close()
    if rng.random() < 0.4 and len(made) > 2:
        spool = Spool(folder, segment_bytes=600)
        made = made[len(spool.peek(rng.randint(1, len(made) // 2))) :]
        spool.ack()
        spool.close()
    lost = rng.choice(DAMAGES)(rng, folder, made)
    spool = Spool(folder, segment_bytes=600)
    assert _drained(spool) == [m for m in made if m not in lost]
    assert (spool.lost, spool.waiting) == (len(lost), 0)
    spool.close()
    again = Spool(folder, segment_bytes=600)
    assert (again.peek(), again.lost) == ([], 0)
    again.close()


@pytest.mark.parametrize("part", range(6))
def test_any_damage_costs_the_damaged_record_alone(tmp_path: Path, part: int) -> None:
    for seed in range(25):
        _random_damage(100 * part + seed, tmp_path / str(seed))


@pytest.mark.slow
def test_five_hundred_damages(tmp_path: Path) -> None:
    for seed in range(1000, 1500):
        _random_damage(seed, tmp_path / str(seed))


def test_a_cursor_that_is_ahead_or_of_another_spool_loses_nothing(tmp_path: Path) -> None:
    for name in ("one", "two"):
        spool = Spool(tmp_path / name)
        spool.append(name.encode())
        spool.close()
    shutil.copy(tmp_path / "one" / "cursor", tmp_path / "two" / "cursor")
    spool = Spool(tmp_path / "two")
    assert _drained(spool) == [b"two"]
    spool.close()


def test_a_file_that_is_hostile_ends(tmp_path: Path) -> None:
    """Records that claim long messages make the search read each byte a few times, no more."""
    from headrace.media.messages.records import MAGIC, packed

    spool = Spool(tmp_path)
    spool.append(b"intact")
    spool.close()
    front = packed(7, bytes(300_000))[:24]
    hostile = front * 10_000 + MAGIC * 10_000
    (segment,) = tmp_path.glob("*.seg")
    segment.write_bytes(hostile + segment.read_bytes())
    spool = Spool(tmp_path)
    assert _drained(spool) == [b"intact"]
    spool.close()


def test_holes_of_a_file_are_not_read(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    for text in (b"one", b"two"):
        spool.append(text)
    spool.close()
    os.truncate(next(tmp_path.glob("*.seg")), 1 << 42)  # reading 4 TiB of zeros takes an hour
    spool = Spool(tmp_path)
    assert [message for message, _ in spool.peek()] == [b"one", b"two"]
    assert spool.lost == 0
    spool.close()


def test_an_empty_folder_goes_and_one_of_the_user_stays(tmp_path: Path) -> None:
    for folder, stays in ((tmp_path / "new" / "spool", False), (tmp_path, True)):
        spool = Spool(folder)
        spool.append(b"one")
        spool.close()
        spool = Spool(folder)
        assert _drained(spool) == [b"one"]
        spool.close()
        assert folder.exists() == stays
        assert not stays or [p.name for p in folder.iterdir()] == ["new"]


def test_a_folder_that_is_removed_meanwhile_is_made_again(tmp_path: Path) -> None:
    folder = tmp_path / "spool"
    spool = Spool(folder)
    spool.append(b"one")
    assert [m for m, _ in spool.peek()] == [b"one"]
    shutil.rmtree(folder)
    spool.append(b"two")
    spool.ack()
    assert _drained(spool) == [b"two"]
    with pytest.raises(MediaError, match="another run"):
        Spool(folder)
    assert spool.lost == 0
    spool.close()
    assert not folder.exists()


def test_a_cursor_or_a_file_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"mine")
    folder = tmp_path / "spool"
    folder.mkdir()
    (folder / "cursor").symlink_to(victim)
    with pytest.raises(MediaError, match="cannot be used"):
        Spool(folder)
    (folder / "cursor").unlink()
    (folder / "refused.jsonl").symlink_to(victim)
    (folder / "1.seg").symlink_to(victim)
    spool = Spool(folder)
    assert spool.foreign == ["1.seg", "refused.jsonl"]
    with pytest.raises(OSError, match=r"\w"):
        spool.set_aside([b"{}"])
    spool.close()
    assert victim.read_bytes() == b"mine"
