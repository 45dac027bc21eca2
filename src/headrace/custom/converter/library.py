"""A library of message payloads, in a worker process."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from headrace._core.findings import Finding
from headrace._core.notices import note_once
from headrace.custom.converter.host import ConverterHost
from headrace.custom.guard.answers import CalledAnswer
from headrace.custom.guard.crash import LibraryDiedError
from headrace.custom.guard.keeper import can_guard
from headrace.custom.guard.options import GuardOptions
from headrace.custom.guard.process import GuardedProcess
from headrace.custom.preparation.host import FRAME, OBJECT
from headrace.media.messages.event import MessageEvent, timestamp
from headrace.meta import UNTRACKED_OBJECT_ID

_OPERATIONS = "headrace.custom.converter.operations"
_WHOLE = (1, 2)  # types whose payloads are of a frame
_LABEL = 127  # bytes


class ConverterLibrary:
    """Makes payloads by the user's functions.

    A crash costs the messages of one frame.

    Args:
        path: the library.
        config: the converter's file, handed over as it is; empty for none.
        payload_type: number of the original's NvDsPayloadType.
        of_metadata: payloads are made of metadata (`msg2p-newapi`), else of events.

    Attributes:
        notices: about the library and its worker.

    Raises:
        CustomLibraryError: it cannot be loaded, lacks a function, or refuses to start.
        LibraryDiedError: it ended its worker.
    """

    def __init__(self, path: Path, config: str, payload_type: int, *, of_metadata: bool) -> None:
        self.notices: list[Finding] = []
        self._path = path.absolute()
        self._whole = payload_type in _WHOLE
        self._settings = {
            "path": str(self._path), "config": config, "type": payload_type,
            "of_metadata": of_metadata,
        }  # fmt: skip
        self._host: ConverterHost | None = None
        self._process: GuardedProcess | None = None
        if problem := can_guard():
            text = f"it cannot run in a worker process: {problem}; it runs in this one"
            self.notices.append(Finding("not-guarded", "warning", text, str(path)))
            self._host = ConverterHost(self._path, config, payload_type, of_metadata)
            return
        self._process = GuardedProcess(str(self._path), GuardOptions(), setup=self._open)
        with self._process.lock:
            self._process.started(str(self._path))

    def _open(self) -> None:
        assert self._process is not None
        for notice in self._process.notices:
            note_once(self.notices, notice)
        answer, _ = self._process.invoke(
            f"{_OPERATIONS}:open_library", self._settings,
            what=f"{self._path}: nvds_msg2p_ctx_create", answer=CalledAnswer,
        )  # fmt: skip
        for notice in answer.notices:
            note_once(self.notices, notice)

    def payloads(self, event: MessageEvent, sensor: str) -> list[bytes]:
        """Make the payloads of a frame.

        Args:
            event: the frame, with its objects.
            sensor: id of the sensor.

        Raises:
            CustomLibraryError: a function raised, or returned what cannot be.
            LibraryDiedError: the library is given up.
        """
        frame, rows = np.zeros(1, FRAME), np.zeros(len(event.objects), OBJECT)
        frame["source_id"], frame["number"] = event.source_id, event.frame
        frame["pts_ns"] = max(0, event.pts_ns)
        for row, one in zip(rows, event.objects, strict=True):
            row["left"], row["top"], row["width"], row["height"] = one.box
            row["class_id"], row["confidence"] = one.class_id, one.confidence
            row["object_id"] = UNTRACKED_OBJECT_ID if one.object_id is None else one.object_id
            row["label"] = one.label.encode(errors="replace")[:_LABEL]
        time = timestamp(event.time)
        if self._host is not None:
            made = self._host.call(frame, rows, self._whole, time, sensor)
            return [part.tobytes() for part in made]
        assert self._process is not None
        what = f"{self._path}: nvds_msg2p_generate"
        sent = [np.frombuffer(a.tobytes(), np.uint8) for a in (frame, rows)]
        try:
            with self._process.lock:
                self._process.started(what)
                _, made = self._process.invoke(
                    f"{_OPERATIONS}:convert",
                    {"whole": self._whole, "time": time, "sensor": sensor},
                    sent, what=what, timeout_s=self._process.options.timeout_s,
                )  # fmt: skip
                return [part.tobytes() for part in made]
        except LibraryDiedError as error:
            if error.death is None:
                raise
            text = "the messages of a frame are not made: {error}"
            data = {"error": f"{error:brief}"}
            where = str(self._path)
            note_once(self.notices, Finding("converter-failed", "warning", text, where, data))
            return []

    def close(self) -> None:
        """End the library's context and its worker."""
        if self._host is not None:
            self._host.close()
        if self._process is not None:
            self._process.close()
