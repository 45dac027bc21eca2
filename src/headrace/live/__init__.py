"""A page that shows a running pipeline. Names resolve on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace._core.lazy import lazy

if TYPE_CHECKING:
    from headrace.live.address import Address, live_address
    from headrace.live.server import LiveServer
    from headrace.live.view import LiveView
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {".address": "Address live_address", ".server": "LiveServer", ".view": "LiveView"},
    )

__all__ = ["Address", "LiveServer", "LiveView", "live_address"]
