"""One source's context of a low-level tracker library, in a worker process or in this one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace._core.errors import CustomLibraryError, HeadraceError
from headrace._core.findings import Finding
from headrace._core.types import Array
from headrace.custom.guard.answers import TrackerAnswer
from headrace.custom.guard.options import GuardOptions
from headrace.custom.guard.process import GuardedProcess
from headrace.custom.nvmot.geometry import Spaces, spaces_of
from headrace.custom.nvmot.host import CUDA_MEMORY, UPDATE, NvmotHost
from headrace.custom.nvmot.operations import describe
from headrace.custom.nvmot.surfaces import formats, surface_image
from headrace.media.frame import Frame
from headrace.meta.track_geometry import TrackGeometry

_OPERATIONS = "headrace.custom.nvmot.operations"


@dataclass(frozen=True, slots=True)
class Asked:
    """The demands of a library.

    Attributes:
        image: it gets the image of each frame.
        color: its format, of the original's NvBufSurfaceColorFormat.
        memory: its NvBufSurfaceMemType.
        records: kinds of `records.MISC_KINDS` that it has.
    """

    image: bool
    color: int
    memory: int
    records: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LibraryTracks:
    """The answer of a library about a frame.

    Attributes:
        ids: (N,) uint64.
        boxes: (N, 4) float32 left, top, width, height in pixels of the frame.
        confidences: (N,) float32.
        class_ids, ages: (N,) int32.
        index: (N,) int32 among the objects that it got; -1 without.
        reids: (N, D) float32, or (0, 0).
        record_ids, records: see `records.misc_rows`; boxes in pixels of the frame.
        masks: N float32 arrays (h, w) relative to the box, foreground above 0.5, empty for an
            object without one; None if no object has one.
        places: what it says of objects in space, of those that it says it of (row -> what).
    """

    ids: npt.NDArray[np.uint64]
    boxes: npt.NDArray[np.float32]
    confidences: npt.NDArray[np.float32]
    class_ids: npt.NDArray[np.int32]
    ages: npt.NDArray[np.int32]
    index: npt.NDArray[np.int32]
    reids: npt.NDArray[np.float32]
    record_ids: npt.NDArray[np.uint64]
    records: npt.NDArray[np.float64]
    masks: list[npt.NDArray[np.float32]] | None = None
    places: Mapping[int, TrackGeometry] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NvmotSettings:
    """How a library is called.

    Attributes:
        path: of the library.
        generation: of `structures.GENERATIONS`.
        config: path of its own file, as it is handed over; empty for none.
        width, height: of the images and boxes that it gets.
        options: limits of the worker; None calls it in this process.
    """

    path: Path
    generation: str
    config: str
    width: int
    height: int
    options: GuardOptions | None = field(default=None)

    def payload(self) -> dict[str, Any]:
        """For `operations.open_context`."""
        return {
            "path": str(self.path), "generation": self.generation, "config": self.config,
            "width": self.width, "height": self.height, "streams": 1,
        }  # fmt: skip


class NvmotSource:
    """The context of one source. It starts with the first frame.

    Args:
        settings: of the library.
        number: of the source.
        changes: texts for the library while it runs, in order; more may follow.

    Attributes:
        notices: about the library and its worker.
        asked: what it asks for, once it has started.
    """

    def __init__(self, settings: NvmotSettings, number: int, changes: Sequence[str] = ()) -> None:
        self.notices: list[Finding] = []
        self._changes, self._made = changes, 0
        self.asked: Asked | None = None
        self._set, self._number = settings, number
        self._host: NvmotHost | None = None
        self._process = None
        if settings.options is not None:
            self._process = GuardedProcess(
                str(settings.path), settings.options, setup=self._open_in_worker
            )

    @property
    def generation(self) -> int:
        """Number of the current worker; each has forgotten the targets of the last one."""
        return 0 if self._process is None else self._process.generation

    def start(self) -> Asked:
        """Load the library and make the context, if that is still to be done.

        Raises:
            CustomLibraryError: it cannot be loaded, or refuses its settings.
            LibraryDiedError: it ended its worker.
        """
        if self._process is not None:
            with self._process.lock:
                self._process.started(str(self._set.path))
        elif self._host is None:
            s = self._set
            self._host = NvmotHost(s.path, s.generation, s.config, s.width, s.height, 1)
            self.notices += self._host.notices
            said = describe(self._host)
            self._take(said["transforms"], said["color"], said["memory"], said["records"])
        assert self.asked is not None
        return self.asked

    def follow_changes(self) -> list[Finding]:
        """Hand texts that came since the last call over; a new worker gets all of them.

        Returns:
            What the library says of those that it refuses.
        """
        refused = []
        while self._made < len(self._changes):
            self.start()
            text = self._changes[self._made]
            self._made += 1
            try:
                if self._process is None:
                    assert self._host is not None
                    self._host.change(text)
                else:
                    what = f"{self._set.path}: {UPDATE}"
                    self._process.invoke(f"{_OPERATIONS}:change", {"text": text}, what=what)
            except HeadraceError as error:
                where, data = str(self._set.path), {"error": f"{error:brief}"}
                said = "a change was not taken: {error}"
                refused.append(Finding("tracker-settings", "warning", said, where, data))
        return refused

    def _open_in_worker(self) -> None:
        assert self._process is not None
        self._made = 0
        self.notices += [n for n in self._process.notices if n not in self.notices]
        said, _ = self._process.invoke(
            f"{_OPERATIONS}:open_context",
            self._set.payload(),
            what=f"{self._set.path}: NvMOT_Init",
            answer=TrackerAnswer,
        )
        self.notices += [n for n in said.notices if n not in self.notices]
        self._take(said.transforms, said.color, said.memory, said.records)

    def _take(self, transforms: int, color: int, memory: int, records: list[str]) -> None:
        where = str(self._set.path)
        if transforms and color not in formats():
            raise CustomLibraryError(
                f"the library asks for images in the colour format {color}",
                where=where,
                expected=f"an NvBufSurfaceColorFormat of {', '.join(map(str, formats()))}",
            )
        if transforms and memory in CUDA_MEMORY:
            text = "it asks for images in the memory of a GPU and gets them in that of the CPU"
            notice = Finding("tracker-memory", "warning", text, where, {"memory": memory})
            self.notices += [notice] if notice not in self.notices else []
        self.asked = Asked(transforms > 0, color, memory, tuple(records))

    def track(
        self, frame: Frame, number: int, boxes: Array, class_ids: Array, confidences: Array,
        *, inferred: bool, size: tuple[int, int], pts_ns: int,
    ) -> LibraryTracks:  # fmt: skip
        """Track the objects of a frame.

        Args:
            frame: its image, looked at if the library asks for it.
            number: of the frame in its source.
            boxes: (N, 4) left, top, width, height in pixels of the frame.
            class_ids, confidences: (N,).
            inferred: a detector looked at it.
            size: width and height of the frame that the boxes are for.
            pts_ns: its time.

        Raises:
            LibraryDiedError: the library ended its worker, or hangs.
            CustomLibraryError: it says that it failed, or answers nonsense.
            MediaError: the image cannot be scaled.
        """
        asked, s = self.start(), self._set
        scale = np.array([s.width / size[0], s.height / size[1]] * 2, np.float64)
        objects = (
            np.ascontiguousarray(boxes * scale, np.float32),
            np.ascontiguousarray(class_ids, np.int32) & 0xFFFF,
            np.ascontiguousarray(confidences, np.float32),
        )
        image = surface_image(frame, asked.color, s.width, s.height) if asked.image else None
        if self._process is None:
            assert self._host is not None
            arrays = self._host.process(
                self._number, number, size, objects, inferred, pts_ns, image
            )
        else:
            payload: dict[str, Any] = {
                "stream": self._number, "frame": number, "size": list(size), "inferred": inferred,
                "pts_ns": pts_ns,
            }  # fmt: skip
            sent = list(objects)
            if image is not None:
                payload["image"] = [image.color, image.width, image.height, image.planes]
                sent.append(image.data)
            timeout = self._process.options.timeout_s
            what = f"{s.path}: NvMOT_Process"
            _, arrays = self._process.invoke(
                f"{_OPERATIONS}:track", payload, sent, what=what, timeout_s=timeout
            )
        return self._checked(arrays, len(boxes), scale)

    def _checked(self, arrays: list[Array], count: int, scale: Array) -> LibraryTracks:
        """The answer in pixels of the frame; rows that make no sense are left out."""
        arrays, spaces = arrays[:6], arrays[6:]
        fitting = len(arrays) == 6 and [a.ndim for a in arrays] == [1, 2, 2, 2, 1, 2]
        rows = len(arrays[0]) if fitting else 0
        shapes = [(rows, 5), (rows, 3)], [(len(arrays[4]), 10)] if fitting else []
        if not fitting or ([a.shape for a in arrays[1:3]], [arrays[5].shape]) != shapes:
            raise CustomLibraryError("its worker answers nonsense", where=str(self._set.path))
        ids, numbers, ints, reids, record_ids, records = (np.array(a) for a in arrays)
        sound = np.isfinite(numbers).all(axis=1) & (numbers[:, 2:4] > 0).all(axis=1)
        if not sound.all():
            text = "it returns boxes that have no area or are no numbers; they are left out"
            notice = Finding("tracker-nonsense", "warning", text, str(self._set.path))
            self.notices += [notice] if notice not in self.notices else []
        index = np.where((ints[:, 2] >= 0) & (ints[:, 2] < count), ints[:, 2], -1)
        masks, places = self._spaces(spaces, np.flatnonzero(sound), rows, scale)
        known = np.isfinite(records).all(axis=1)
        records[:, 3:7] /= scale
        vectors = reids.astype(np.float32)[sound] if len(reids) == rows else np.empty((0, 0))
        return LibraryTracks(
            ids.astype(np.uint64)[sound],
            (numbers[:, :4] / scale).astype(np.float32)[sound],
            numbers[:, 4].astype(np.float32)[sound],
            ints[sound, 0],
            ints[sound, 1],
            index[sound].astype(np.int32),
            np.nan_to_num(vectors).astype(np.float32),
            record_ids.astype(np.uint64)[known],
            records[known],
            masks,
            places,
        )

    def _spaces(
        self, arrays: list[Array], sound: npt.NDArray[np.intp], rows: int, scale: Array
    ) -> tuple[list[npt.NDArray[np.float32]] | None, dict[int, TrackGeometry]]:
        """Masks and places of the sound rows, in pixels of the frame."""
        try:
            masks, places, odd = spaces_of(Spaces(*map(np.array, arrays)), rows, scale)
        except (TypeError, ValueError, IndexError) as error:
            where = str(self._set.path)
            raise CustomLibraryError("its worker answers nonsense", where=where) from error
        if odd:
            text = "it returns masks or hulls that are larger than their memory; they are left out"
            notice = Finding("tracker-nonsense", "warning", text, str(self._set.path))
            self.notices += [notice] if notice not in self.notices else []
        kept = sound.tolist()
        found = {k: places[row] for k, row in enumerate(kept) if row in places}
        return None if masks is None else [masks[row] for row in kept], found

    def close(self) -> None:
        """Remove the source and end the context and its worker."""
        if self._host is not None:
            self._host.remove(self._number)
            self._host.close()
            self._host = None
        if self._process is None:
            return
        if self._process.pid is not None:
            with suppress(HeadraceError):
                payload = {"stream": self._number}
                self._process.invoke(
                    f"{_OPERATIONS}:close_context", payload, what=f"{self._set.path}: NvMOT_DeInit"
                )
        self._process.close()
