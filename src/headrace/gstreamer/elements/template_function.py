"""Libraries of nvdsvideotemplate in Python: a file with a function that works on batches."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace._core.errors import CustomLibraryError
from headrace._core.user_module import describe, import_file, is_interrupt

if TYPE_CHECKING:
    from headrace.gstreamer.pyds.meta import NvDsBatchMeta

SIGNATURE = "def process(batch, images) -> bool | None"


class TemplateFunction:
    """A user's `process`, and `set_property` if there is one.

    `process(batch, images)` gets the metadata of a batch, as `pyds` has it, and the image of each
    of its frames, (height, width, 4) uint8 RGBA, to write into. False drops the batch.

    Args:
        path: the Python file.

    Raises:
        CustomLibraryError: it cannot be read, or has no such function.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        module = import_file(path)
        process = getattr(module, "process", None)
        self._set = getattr(module, "set_property", None)
        if not callable(process):
            raise CustomLibraryError(
                "it has no function process", where=str(path), expected=SIGNATURE
            )
        self._process: Callable[..., Any] = process

    def set(self, key: str, value: str) -> bool:
        """Hand over a property; False where the file knows none, or refuses it."""
        return callable(self._set) and self._call(self._set, key, value)

    def process(self, batch: NvDsBatchMeta) -> bool:
        """Work on a batch; False drops it.

        Raises:
            CustomLibraryError: the function raised, or returned something else.
        """
        images = [surface.rgba() for surface in batch.surfaces]
        return self._call(self._process, batch, images)

    def _call(self, function: Callable[..., Any], *arguments: Any) -> bool:
        name = f"{self._path}: {getattr(function, '__name__', 'function')}"
        try:
            result = function(*arguments)
        except BaseException as error:  # also sys.exit(0), which would look like success
            if is_interrupt(error):
                raise
            message, line, trail = describe(error, self._path.parent)
            raise CustomLibraryError(message, where=line or name, fix=trail) from error
        if result is not None and not isinstance(result, bool):
            raise CustomLibraryError(
                f"the function returned {type(result).__name__}", where=name,
                expected="None or True; False drops or refuses",
            )  # fmt: skip
        return result is not False
