"""Files below the folder of a batch, reached without a link on the way: one would lead elsewhere.

The folder itself is what the user named, and may be reached through links.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from headrace.batches.storage import GO_ON, StorageError

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


@contextmanager
def folder_inside(root: Path, parts: Sequence[str], *, make: bool = False) -> Iterator[int]:
    """The descriptor of a folder below `root`.

    Args:
        root: the folder of the batch.
        parts: names of the folders on the way.
        make: make those that are missing.

    Raises:
        FileNotFoundError: one is missing.
        StorageError: one is a link, or no folder.
        OSError: as the system says.
    """
    descriptor = os.open(root, _FOLDER)
    try:
        for number, part in enumerate(parts, 1):
            if make:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=descriptor)
            try:
                inner = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=descriptor)
            except NotADirectoryError as error:  # of a link, too
                raise leads_elsewhere(root.joinpath(*parts[:number])) from error
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


def move_inside(content: Path, root: Path, location: str) -> None:
    """Give a file its place below `root`, in folders that are made; it replaces a link there.

    Raises:
        StorageError: a folder on the way is a link, or no folder.
        OSError: as the system says.
    """
    *parts, name = location.split("/")
    with folder_inside(root, parts, make=True) as folder:
        os.replace(content, name, dst_dir_fd=folder)


def remove_inside(root: Path, location: str) -> None:
    """Remove a file below `root`, if it is there; of a link the link itself.

    Raises:
        StorageError: a folder on the way is a link, or no folder.
        OSError: as the system says.
    """
    *parts, name = location.split("/")
    with suppress(FileNotFoundError), folder_inside(root, parts) as folder:
        os.unlink(name, dir_fd=folder)


def files_inside(root: Path, parts: Sequence[str]) -> Iterator[str]:
    """Places of the files that lie two folders deep below `root`; links are left out.

    Raises:
        StorageError: a folder on the way is a link, or no folder.
        OSError: as the system says.
    """
    with suppress(FileNotFoundError), folder_inside(root, parts) as folder:
        for shard in sorted(os.listdir(folder)):
            if not stat.S_ISDIR(os.stat(shard, dir_fd=folder, follow_symlinks=False).st_mode):
                continue
            with folder_inside(root, [*parts, shard]) as inner:
                for name in sorted(os.listdir(inner)):
                    mode = os.stat(name, dir_fd=inner, follow_symlinks=False).st_mode
                    if stat.S_ISREG(mode):
                        yield "/".join([*parts, shard, name])


def refuse_links(root: Path, names: Sequence[str]) -> None:
    """Refuse links among the entries of a batch's folder that it writes to.

    Raises:
        StorageError: one is a link.
    """
    for name in names:
        if (root / name).is_symlink():
            raise leads_elsewhere(root / name)


def leads_elsewhere(path: Path) -> StorageError:
    """The error of an entry that is a link, or no folder."""
    what = f"a link to {os.readlink(path)}" if path.is_symlink() else "no folder"
    return StorageError(
        f"{path} is {what}: results of a batch stay in its folder",
        where=str(path),
        fix=["remove it, or choose another folder", GO_ON],
    )
