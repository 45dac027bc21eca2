"""The form of each answer of a worker; an answer without it is refused.

Each class is what one operation answers beside its arrays. Its fields are bounded, since whatever a
library has overwritten answers, too.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from headrace._core.findings import Finding
from headrace.custom.guard.ipc import ProtocolError, checked_finding

_Name = Annotated[str, Meta(max_length=4096)]
_Record = Annotated[str, Meta(max_length=1 << 20)]
_Number = Annotated[int, Meta(ge=0, lt=1 << 31)]
_Notices = Annotated[list[Finding], Meta(max_length=4096)]
_Names = Annotated[list[_Name], Meta(max_length=1 << 16)]


class Answer(msgspec.Struct, kw_only=True):
    """An answer without anything; arrays may come with it."""


class StartedAnswer(Answer):
    """Of `serve.tell_open`.

    Attributes:
        left: what could not be closed, and why.
    """

    left: Annotated[list[tuple[_Name, _Name]], Meta(max_length=64)]


class LoadedAnswer(Answer):
    """Of `serve.load_library`."""

    symbols: _Names
    initializer: bool


class OpenedAnswer(Answer):
    """Of `serve.open_parser`."""

    parser: _Number


class CreatorsAnswer(Answer):
    """Of `guarded_operations.open_engines`: name, version, namespace, of the third kind."""

    creators: Annotated[list[tuple[_Name, _Name, _Name, bool]], Meta(max_length=1 << 16)]
    notices: _Notices


class MadeAnswer(Answer):
    """Of `guarded_operations.make_network`: the network is an array, a plan another."""

    network: _Number
    plugins: _Names
    implicit_batch: bool
    notices: _Notices


class BuiltAnswer(Answer):
    """Of `guarded_operations.build_layers`: `none`, or all others."""

    none: bool = False
    records: Annotated[list[_Record], Meta(max_length=1 << 16)] = []
    blobs: _Names = []
    notices: _Notices = []
    built: Annotated[list[_Number], Meta(max_length=1 << 16)] = []


class LayerAnswer(Answer):
    """Of `guarded_operations.load_layer`."""

    layer: Annotated[int, Meta(gt=0, lt=1 << 31)]


class ContextAnswer(Answer):
    """Of `guarded_operations.open_layer`."""

    context: Annotated[int, Meta(gt=0, lt=1 << 31)]


class CalledAnswer(Answer):
    """Of `guarded_operations.call_layer`: the outputs are arrays."""

    notices: _Notices = []


class TrackerAnswer(Answer):
    """Of `nvmot.operations.open_context`: fields of NvMOTQuery."""

    transforms: Annotated[int, Meta(ge=0, le=255)]
    color: int
    memory: int
    records: Annotated[list[_Name], Meta(max_length=3)]
    lacking: _Name = ""
    notices: _Notices = []


class TrialAnswer(Answer):
    """Of `nvmot.operations.try_generation`: a sound answer or not; None for no answer."""

    sound: bool | None


T = TypeVar("T")


def read_answer(payload: Any, kind: type[T]) -> T:
    """Convert a payload to a class of answers.

    Raises:
        ProtocolError: it is no such answer.
    """
    try:
        answer = msgspec.convert(payload, kind)
    except (msgspec.ValidationError, ValueError, TypeError, RecursionError) as error:
        raise ProtocolError(f"an answer that cannot be read: {error}") from error
    for finding in getattr(answer, "notices", ()):
        checked_finding(finding)
    return answer
