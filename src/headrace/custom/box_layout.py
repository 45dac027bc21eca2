"""The box layout of one C++ library, decided as early as the evidence allows."""

from __future__ import annotations

import threading
from typing import Literal

import numpy as np
import numpy.typing as npt

from headrace._core.errors import ParserError
from headrace._core.findings import Finding
from headrace.binary.abi import BoxLayout, StaticEvidence, candidates, plausibility, static_evidence
from headrace.binary.elf import ElfFile
from headrace.meta import DetectionParams, NetworkInfo

_LAYOUTS: dict[str, BoxLayout] = {"24": 24, "28": 28}
_GENERATION = {24: "generation 8.0 and older", 28: "generation 9.0 and newer"}


class LayoutDecision:
    """24 or 28 bytes per box: set by the user, declared by the file, or found from frames.

    The first frame whose number of bytes fits one layout only confirms or corrects a layout that
    the file only suggests. Until then each frame is read in the layout in which its boxes are
    plausible.

    Attributes:
        current: the best knowledge, None before any evidence.
        certain: True if frames can no longer change it.
    """

    def __init__(self, elf: ElfFile, abi: str, decisions: list[Finding]) -> None:
        self._where = str(elf.path)
        self._decisions = decisions
        self._guess_noticed = False
        self._deciding = threading.Lock()  # parsers of one library may run in several threads
        evidence = static_evidence(elf)
        forced = _LAYOUTS.get(abi)
        self.current: BoxLayout | None = forced or evidence.layout
        self.certain = forced is not None or evidence.certain
        self._reason = "it was set" if forced else evidence.reason
        self._first: Finding | None = self._first_notice(forced, evidence)

    def announce(self) -> None:
        """Add a notice of the evidence before any frame, once; for parsers that return boxes."""
        first, self._first = self._first, None
        if first is not None:
            self._decisions.append(first)

    def _first_notice(self, forced: BoxLayout | None, evidence: StaticEvidence) -> Finding:
        where, reason = self._where, evidence.reason
        if forced:
            text = f"boxes are read as {forced} bytes each, as set"
            if evidence.layout in (None, forced):
                return Finding("box-size", "info", text, where)
            return Finding("box-layout", "warning", f"{text}, although {reason}", where)
        text = f"the size of boxes is undecided ({reason}): frames will tell"
        if self.current:
            sure = "" if self.certain else "; the first frames will confirm it"
            generation = _GENERATION[self.current]
            text = f"boxes have {self.current} bytes ({generation}): {reason}{sure}"
        return Finding("box-size", "info", text, where)

    def __str__(self) -> str:
        if self.current is None:
            return "box layout undecided"
        return f"{self.current}-byte boxes" + ("" if self.certain else " (unconfirmed)")

    def of_frame(
        self,
        data: npt.NDArray[np.uint8],
        capacity: int,
        network: NetworkInfo,
        params: DetectionParams,
        where: str,
    ) -> BoxLayout:
        """Choose the layout to read one frame's boxes in.

        Args:
            data: (bytes,) uint8, the content of the parser's vector; not empty.
            capacity: bytes of the vector's storage.
            network: input of the network: boxes are near it.
            params: has the number of classes.
            where: library and function, for errors.

        Raises:
            ParserError: the bytes are not a whole number of boxes.
        """
        if self.certain and self.current:
            if data.size % self.current:
                raise self._misfit(data.size, where)
            return self.current
        fitting = candidates(data.size, capacity)
        if not fitting:
            raise self._misfit(data.size, where)
        with self._deciding:
            if len(fitting) == 1:
                if not self.certain:
                    self._confirm(fitting[0], data.size, capacity)
                return fitting[0]
            return self._most_plausible(data, network, params)

    def _confirm(self, layout: BoxLayout, size: int, capacity: int) -> None:
        against = self.current not in (None, layout)
        self.current, self.certain = layout, True
        evidence = f"a frame of {size} bytes in a vector of {capacity} allows nothing else"
        text = f"boxes have {layout} bytes ({_GENERATION[layout]}), confirmed: {evidence}"
        if against:
            text = f"boxes have {layout} bytes after all: {evidence}, although {self._reason}"
        level: Literal["info", "warning"] = "warning" if against else "info"
        self._decisions.append(Finding("box-layout", level, text, self._where))

    def _most_plausible(
        self, data: npt.NDArray[np.uint8], network: NetworkInfo, params: DetectionParams
    ) -> BoxLayout:
        share = {
            layout: plausibility(data, layout, params.num_classes, network.width, network.height)
            for layout in _LAYOUTS.values()
        }
        best: BoxLayout = self.current or 28
        if share[24] != share[28]:
            best = 24 if share[24] > share[28] else 28
        if best != self.current and not self._guess_noticed:
            self._guess_noticed = True
            text = (
                f"a frame of {data.size} bytes may hold boxes of 24 or 28 bytes; {best} is taken "
                f"({share[24]:.0%} of the boxes are plausible as 24, {share[28]:.0%} as 28 bytes) "
                "until a frame decides; if this is wrong, set custom-lib-abi"
            )
            level: Literal["info", "warning"] = "warning" if self.current else "info"
            self._decisions.append(Finding("box-layout", level, text, self._where))
        return best

    def _misfit(self, size: int, where: str) -> ParserError:
        known = f"{self.current} ({self})" if self.current else "24 or 28"
        return ParserError(
            f"the parser returned {size} bytes, which is not a whole number of boxes",
            where=where,
            expected=f"a multiple of {known}",
            fix=[
                f"why this layout: {self._reason}",
                "if it is wrong, set custom-lib-abi to the other one of 24 and 28",
                "or the function is no detector parser: CHECK_CUSTOM_PARSE_FUNC_PROTOTYPE tells",
            ],
        )
