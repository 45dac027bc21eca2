"""Spec D.3 and D.4 read literally: one object at a time, one dictionary per source."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.errors import GeometryError
from headrace.infer.geometry import Rect, fit

UNTRACKED = 0xFFFFFFFFFFFFFFFF
DEFAULT = 2147483647


class Oracle:
    def __init__(self, cfg, generation="9.1"):
        self.cfg, self.kind = cfg, int(cfg.network_type)
        self.least = 16 if generation == "6.2" else 1
        self.is_async = cfg.classifier_async_mode and self.kind == 1
        self.maps = {}  # source -> {"objects": id -> entry, "seen", "cleaned"}
        self.buffers = 0
        self.warnings = []
        self.warned = set()  # the same text is told once

    def buffer(self):
        self.buffers += 1
        if self.buffers <= 1800:
            return
        self.buffers = 0
        for source in self.maps.values():
            if 0 <= source["seen"] - source["cleaned"] < 1800:
                continue
            source["cleaned"] = source["seen"]
            for object_id, entry in list(source["objects"].items()):
                unseen = source["seen"] - entry["accessed"]
                if (unseen > 150 or unseen < 0) and not entry["pending"]:
                    del source["objects"][object_id]

    def rejected(self, meta, o, history):
        """The number of the first rule that rejects an object, or 0."""
        cfg = self.cfg
        _, _, width, height = (np.float32(v) for v in o["rect"])
        if cfg.operate_on_gie_id > -1 and o["gie"] != cfg.operate_on_gie_id:
            return 1
        if self.kind in (0, 3) and o["gie"] == cfg.gie_unique_id:
            return 1
        if width < max(self.least, cfg.input_object_min_width):
            return 2
        if height < max(self.least, cfg.input_object_min_height):
            return 3
        if cfg.input_object_max_width and width > cfg.input_object_max_width:
            return 4
        if cfg.input_object_max_height and height > cfg.input_object_max_height:
            return 5
        if cfg.operate_on_class_ids and (o["cls"] < 0 or o["cls"] not in cfg.operate_on_class_ids):
            return 6
        try:
            src = fit(Rect(*(float(np.float32(v)) for v in o["rect"])), 8, 8).src
        except GeometryError:
            return 6
        if src.left >= meta.width or src.top >= meta.height:
            return 6
        if history is None:
            return 0
        age = (meta.frame - history["frame"]) % 2**64
        interval = cfg.secondary_reinfer_interval % 2**32
        if self.kind == 1:
            grew = float(history["area"]) * 1.2 < float(width * height)
            if not grew and not age > interval:
                return 7
        if self.kind == 0 and not (age > interval or interval == DEFAULT):
            return 8
        return 0

    def select(self, meta, objects):
        """Indices submitted, indices cached, entries of both."""
        empty = {"objects": {}, "seen": 0, "cleaned": 0}
        source = self.maps.setdefault(meta.source_id, empty)
        source["seen"] = meta.frame
        infer, cached, submitted, remembered = [], [], [], []
        for i, o in enumerate(objects):
            tracked = o["id"] != UNTRACKED
            history = source["objects"].get(o["id"]) if tracked else None
            passes = not self.rejected(meta, o, history)
            if history is not None:
                history["accessed"] = meta.frame
                if self.kind == 1 and (self.is_async or not passes):
                    cached.append(i)
                    remembered.append(history)
            if not tracked and self.is_async:
                if passes:
                    last = self.warnings[-1] if self.warnings else None
                    if last is None or meta.pts_ns - last >= 300 * 10**9:
                        self.warnings.append(meta.pts_ns)
                        self.warned.add((meta.frame, meta.source))
                continue
            if not passes:
                continue
            if tracked:
                if history is None:
                    history = {"result": None, "accessed": meta.frame, "pending": 0}
                    source["objects"][o["id"]] = history
                history["frame"] = meta.frame
                history["area"] = np.float32(o["rect"][2]) * np.float32(o["rect"][3])
                history["pending"] += self.kind == 1
            infer.append(i)
            submitted.append(history)
        return infer, cached, submitted, remembered

    @staticmethod
    def store(submitted, results):
        for entry, result in zip(submitted, results, strict=True):
            if entry is not None:
                entry["result"] = result
                entry["pending"] -= 1

    def end_of_stream(self, source_id):
        self.maps.pop(source_id, None)

    def clear(self):
        self.maps.clear()


def remembered_entry(selector: Any, source_id: int, object_id: int) -> Any:
    """Return what a selector's memory holds of one object, or None."""
    history = selector._histories.get(source_id)
    slot = None if history is None else history._slots.get(object_id)
    return None if slot is None else history._entries[slot]


def remembered_result(selector: Any, source_id: int, object_id: int) -> Any:
    """Return the remembered result of one object, or None."""
    entry = remembered_entry(selector, source_id, object_id)
    return None if entry is None else entry.result
