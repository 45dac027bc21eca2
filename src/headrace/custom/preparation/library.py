"""A library of `nvdspreprocess`, in a worker process or in this one."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace._core.errors import CustomLibraryError, HeadraceError
from headrace._core.findings import Finding
from headrace._core.notices import note_once
from headrace._core.types import Array, DType
from headrace.custom.guard.answers import CalledAnswer
from headrace.custom.guard.options import GuardOptions
from headrace.custom.guard.process import GuardedProcess
from headrace.custom.preparation.host import REGION, PreparationHost, rows_of

_OPERATIONS = "headrace.custom.preparation.operations"


class PreparationLibrary:
    """Calls the user's function.

    Args:
        path: the library.
        settings: as for `host.PreparationHost`.
        options: limits of the worker; None calls it in this process.

    Attributes:
        notices: about the library and its worker.

    Raises:
        CustomLibraryError: it cannot be loaded, lacks a function, or refuses to start.
        LibraryDiedError: it ended its worker.
    """

    def __init__(
        self, path: Path, settings: dict[str, Any], options: GuardOptions | None = None
    ) -> None:
        self.notices: list[Finding] = []
        self._path, self._settings = path, settings
        self._dtype: DType = np.dtype(settings["dtype"])
        self._most = settings["shape"]
        self._host: PreparationHost | None = None
        self._process: GuardedProcess | None = None
        if options is None:
            self._host = PreparationHost(path, settings)
            self.notices += self._host.notices
            return
        self._process = GuardedProcess(str(path), options, setup=self._open_in_worker)
        with self._process.lock:
            self._process.started(str(path))

    def _open_in_worker(self) -> None:
        assert self._process is not None
        for notice in self._process.notices:
            note_once(self.notices, notice)
        answer, _ = self._process.invoke(
            f"{_OPERATIONS}:open_library",
            {"path": str(self._path), "settings": self._settings},
            what=f"{self._path}: initLib",
            answer=CalledAnswer,
        )
        for notice in answer.notices:
            note_once(self.notices, notice)

    def call(
        self, frames: Array, images: Sequence[Array], objects: Array, regions: Array, scaled: Array
    ) -> tuple[Array, npt.NDArray[np.void]] | None:
        """Make a tensor, see `PreparationHost.call`.

        Raises:
            LibraryDiedError: the library ended its worker, or hangs.
            CustomLibraryError: it says that it failed, or answers nonsense.
        """
        if self._host is not None:
            answer = self._host.call(frames, images, objects, regions, scaled)
            return None if answer is None else self._checked(*answer, frames, objects)
        process = self._process
        assert process is not None
        rows = [np.frombuffer(a.tobytes(), np.uint8) for a in (frames, objects, regions)]
        what = f"{self._path}: {self._settings['function']}"
        with process.lock:
            process.started(what)
            _, arrays = process.invoke(
                f"{_OPERATIONS}:prepare", {}, [*rows, scaled, *images], what=what,
                timeout_s=process.options.timeout_s,
            )  # fmt: skip
            arrays = [np.array(a) for a in arrays]
        if not arrays:
            return None
        if len(arrays) != 2 or arrays[1].nbytes % REGION.itemsize:
            raise CustomLibraryError("its worker answers nonsense", where=str(self._path))
        return self._checked(arrays[0], rows_of(arrays[1], REGION), frames, objects)

    def _checked(
        self, tensor: Array, regions: Array, frames: Array, objects: Array
    ) -> tuple[Array, npt.NDArray[np.void]]:
        """Check the answer; rows of regions of no frame of this batch are left out."""
        known = (regions["frame"] >= 0) & (regions["frame"] < len(frames))
        names = [n for n in REGION.names or () if regions[n].dtype.kind == "f"]
        sound = known & np.logical_and.reduce([np.isfinite(regions[n]) for n in names])
        if (
            len(regions) != len(tensor)
            or tensor.dtype != self._dtype
            or tensor.nbytes > int(np.prod(self._most)) * self._dtype.itemsize
            or (regions["object"] >= len(objects)).any()
        ):
            raise CustomLibraryError("its worker answers nonsense", where=str(self._path))
        if not sound.all():
            text = "rows of a tensor whose regions are of no frame of the batch are left out"
            note_once(self.notices, Finding("preparation-rows", "warning", text, str(self._path)))
        return tensor[sound], regions[sound]

    def close(self) -> None:
        """End the library's context and its worker."""
        if self._host is not None:
            self._host.close()
        if self._process is None:
            return
        if self._process.pid is not None:
            with suppress(HeadraceError):
                self._process.invoke(
                    f"{_OPERATIONS}:close_library", {}, what=f"{self._path}: deInitLib"
                )
        self._process.close()
