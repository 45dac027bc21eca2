"""A page that shows a running pipeline. Names resolve on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace._core.lazy import lazy

if TYPE_CHECKING:
    from headrace.live.server import Address, LiveServer, live_address
    from headrace.live.view import LiveView
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {".server": "Address LiveServer live_address", ".view": "LiveView"},
    )

__all__ = ["Address", "LiveServer", "LiveView", "live_address"]
