"""Names of classes, from a model's metadata or from the number of its classes."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping, Sequence
from typing import Any

_MOST = 100_000

COCO = tuple(
    """person;bicycle;car;motorcycle;airplane;bus;train;truck;boat;traffic light;fire hydrant;stop
sign;parking meter;bench;bird;cat;dog;horse;sheep;cow;elephant;bear;zebra;giraffe;backpack;umbrella
;handbag;tie;suitcase;frisbee;skis;snowboard;sports ball;kite;baseball bat;baseball glove;skateboard
;surfboard;tennis racket;bottle;wine glass;cup;fork;knife;spoon;bowl;banana;apple;sandwich;orange;
broccoli;carrot;hot dog;pizza;donut;cake;chair;couch;potted plant;bed;dining table;toilet;tv;laptop;
mouse;remote;keyboard;cell phone;microwave;oven;toaster;sink;refrigerator;book;clock;vase;scissors;
teddy bear;hair drier;toothbrush""".replace("\n", " ").split(";")
)
COCO = tuple(name.strip() for name in COCO)

_UNUSED = frozenset((0, 12, 26, 29, 30, 45, 66, 68, 69, 71, 83))
_rest = iter(COCO)
COCO_IDS = tuple(f"id {i}" if i in _UNUSED else next(_rest) for i in range(91))
"""Names by COCO's ids, which count from 1 and leave ten out."""

_KEYS = ("names", "classes", "class_names", "labels", "id2label", "CLASSES", "label_names")


def names_in(metadata: Mapping[str, str]) -> tuple[tuple[str, ...], str] | None:
    """The names in order of their classes, and the key that has them; None if no key has."""
    for key in _KEYS:
        text = metadata.get(key, "").strip()
        if text and (names := _parsed(text)):
            return names, key
    return None


def characters_in(metadata: Mapping[str, str]) -> tuple[str, ...]:
    """The characters that a reader of text knows, in PaddleOCR's `character`; empty if none."""
    text = metadata.get("character", "")
    return tuple(text.rstrip("\r\n").split("\n")) if text else ()


def _parsed(text: str) -> tuple[str, ...]:
    """Names of a JSON or Python list or dictionary by number, or of lines or commas."""
    if text[0] in "[{(":
        value: Any = None
        for read in (json.loads, ast.literal_eval):
            try:
                value = read(text)
                break
            except (ValueError, SyntaxError, RecursionError, MemoryError):
                continue
        return _listed(value)
    parts = text.splitlines() if "\n" in text else text.split(",")
    return tuple(part.strip() for part in parts if part.strip()) if len(parts) > 1 else ()


def _listed(value: object) -> tuple[str, ...]:
    if isinstance(value, Mapping):
        try:
            by_number = {int(number): str(name) for number, name in value.items()}
        except (TypeError, ValueError, OverflowError):
            return ()
        if not by_number or min(by_number) < 0 or max(by_number) >= _MOST:
            return ()
        return tuple(by_number.get(i, f"class {i}") for i in range(max(by_number) + 1))
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return tuple(str(name) for name in value[:_MOST])
    return ()
