"""The fields of a message of Caffe's network files: typed access that notes which were read."""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import suppress

from headrace._core.errors import ModelError
from headrace._core.proto_text import Message, Scalar

# They say how to train, or which library computes: nothing about the result.
_NO_EFFECT = frozenset(
    [
        *("name", "type", "top", "bottom", "phase", "include", "exclude"),
        *("param", "blobs_lr", "lr_mult", "weight_decay", "decay_mult", "propagate_down"),
        *("weight_filler", "bias_filler", "filler", "slope_filler", "scale_filler"),
        *("loss_weight", "loss_param", "accuracy_param", "data_param", "transform_param"),
        *("force_backward", "moving_average_fraction", "use_global_stats", "quantization_param"),
        *("engine", "force_nd_im2col", "stable_prod_grad", "debug_info", "cudnn_math_override"),
        *("cudnn_convolution_algo_seeker", "forward_type", "backward_type", "forward_math"),
        *("backward_math", "visualize", "visualize_threshold", "save_file", "save_output_param"),
    ]
)


class Fields:
    """One message: `fields.integer("num_output")`.

    Args:
        message: None stands for an absent, empty message.
        where: the file.
        what: what the message belongs to, for errors: "layer 'conv1' (Convolution)".
    """

    def __init__(self, message: Message | None, where: str, what: str) -> None:
        self._message = message or Message(0)
        self._where = where
        self._what = what
        self._read: dict[str, None] = {}

    def error(self, name: str, problem: str, expected: str | None = None) -> ModelError:
        """An error about one field."""
        values = self._message.entries.get(name)
        line = values[0].line if values else self._message.line
        return ModelError(problem, where=f"{self._where}:{line}, {self._what}", expected=expected)

    def has(self, name: str) -> bool:
        """Whether a field is there at all."""
        self._read[name] = None
        return name in self._message.entries

    def names(self) -> list[str]:
        """Fields that are there and have to do with the result."""
        return [name for name in self._message.entries if name not in _NO_EFFECT]

    def groups(self) -> list[str]:
        """Those of them that are groups in brackets."""
        entries = self._message.entries
        return [name for name in self.names() if isinstance(entries[name][0], Message)]

    def _values(self, name: str) -> list[Scalar | Message]:
        self._read[name] = None
        return self._message.entries.get(name, [])

    def scalars(self, name: str) -> list[Scalar]:
        """The values of a field as they are written."""
        scalars = []
        for value in self._values(name):
            if isinstance(value, Message):
                raise self.error(name, f"{name} is a group in brackets", f"{name}: value")
            scalars.append(value)
        return scalars

    def _one(self, name: str) -> Scalar | None:
        scalars = self.scalars(name)
        if len(scalars) > 1:
            raise self.error(name, f"{name} is given {len(scalars)} times", "one value")
        return scalars[0] if scalars else None

    def integers(self, name: str) -> list[int]:
        """A repeated integer."""
        return [self._int(name, scalar) for scalar in self.scalars(name)]

    def integer(self, name: str, default: int = 0) -> int:
        """One integer."""
        scalar = self._one(name)
        return default if scalar is None else self._int(name, scalar)

    def numbers(self, name: str) -> list[float]:
        """A repeated number."""
        return [self._float(name, scalar) for scalar in self.scalars(name)]

    def number(self, name: str, default: float = 0.0) -> float:
        """One number."""
        scalar = self._one(name)
        return default if scalar is None else self._float(name, scalar)

    def flag(self, name: str, default: bool) -> bool:
        """true, false, 1 or 0."""
        scalar = self._one(name)
        if scalar is None:
            return default
        word = scalar.text.lower()
        if scalar.kind == "string" or word not in ("true", "false", "t", "f", "1", "0"):
            raise self.error(name, f"{name}: {scalar.text!r}", "true or false")
        return word in ("true", "t", "1")

    def choice(
        self, name: str, words: Iterable[str], default: str | None = None, first: int = 0
    ) -> str:
        """One of an enumeration's words, written as word or number (counted from `first`).

        Absent, it is `default`, or the first word.
        """
        known = list(words)
        scalar = self._one(name)
        if scalar is None:
            return default or known[0]
        if scalar.kind == "number" and scalar.text.isdigit():
            index = self._int(name, scalar) - first
            if 0 <= index < len(known):
                return known[index]
        if scalar.text not in known:
            raise self.error(name, f"{name}: {scalar.text!r}", f"one of {', '.join(known)}")
        return scalar.text

    def text(self, name: str, default: str = "") -> str:
        """One string or word."""
        scalar = self._one(name)
        return default if scalar is None else scalar.text

    def texts(self, name: str) -> list[str]:
        """A repeated string."""
        return [scalar.text for scalar in self.scalars(name)]

    def message(self, name: str) -> Fields:
        """A group in brackets; an absent one is empty."""
        groups = self.messages(name)
        if len(groups) > 1:
            raise self.error(name, f"{name} is given {len(groups)} times", "one group")
        return groups[0] if groups else Fields(None, self._where, self._what)

    def messages(self, name: str) -> list[Fields]:
        """A repeated group in brackets."""
        groups = []
        for value in self._values(name):
            if not isinstance(value, Message):
                raise self.error(name, f"{name}: {value.text!r}", f"{name} {{ ... }}")
            groups.append(Fields(value, self._where, self._what))
        return groups

    def refuse_unread(self) -> None:
        """Refuse fields that no lowering read and that may change the result."""
        for name in self._message.entries:
            if name not in self._read and name not in _NO_EFFECT:
                known = ", ".join(self._read)
                raise self.error(name, f"the field {name!r} is not understood", f"of {known}")

    def _int(self, name: str, scalar: Scalar) -> int:
        value: int | None = None
        if scalar.kind == "number":
            with suppress(ValueError):
                value = int(scalar.text, 0 if scalar.text[:2] in ("0x", "0X") else 10)
        if value is None:
            raise self.error(name, f"{name}: {scalar.text[:60]!r}", "an integer")
        if not -(2**63) <= value < 2**63:
            raise self.error(name, f"{name}: {scalar.text[:60]}", "an integer of 64 bits")
        return value

    def _float(self, name: str, scalar: Scalar) -> float:
        value, text = None, scalar.text[:60]
        if scalar.kind != "string":
            with suppress(ValueError):
                value = scalar.real()
        if value is None:
            raise self.error(name, f"{name}: {text!r}", "a number")
        if not math.isfinite(value):
            raise self.error(name, f"{name}: {text}", "a finite number")
        return value
