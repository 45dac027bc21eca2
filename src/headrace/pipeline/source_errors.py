"""Errors of sources as messages to a broker, while a pipeline runs."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from headrace._core.findings import Finding
from headrace._core.text import counted, error_text
from headrace._core.threads import start_thread
from headrace._core.urls import url_name
from headrace.media.messages.address import BrokerAddress
from headrace.media.messages.brokers import broker_for
from headrace.media.messages.event import timestamp
from headrace.media.messages.payload import as_json
from headrace.media.messages.sender import Sender
from headrace.media.messages.spool import Spool, spool_folder
from headrace.media.sources.reconnect import Losses
from headrace.pipeline.notice_follower import NoticeFollower

if TYPE_CHECKING:
    from headrace.pipeline.pipeline import Pipeline

# notices of sources: of one that is over, and of one that is away for a while
_TYPES = {"reading-stopped": "CRITICAL", "connection-away": "FUNCTIONAL"}
_LOOK_S = 0.5
_DRAIN_S = 2.0


class SourceErrors:
    """Sends a message of each source that fails or loses its connection, at least once.

    A message is JSON with `stream_id`, `timestamp`, `type` (`CRITICAL` where the source is over,
    `FUNCTIONAL` where it may come back), `source` and `event`.
    Source: the original's documentation of its REST server, "error propagation".

    Args:
        url: of the broker and topic.

    Raises:
        HeadraceError: the URL is none, or the client is not installed.
    """

    def __init__(self, url: str, spool: Path | None = None) -> None:
        self.name = url_name(url)
        self.notices: list[Finding] = []
        broker = broker_for(BrokerAddress.from_url(urlsplit(url), self.name))
        folder = spool or spool_folder(f"{self.name}#errors")
        losses = Losses(self.notices, self.name, "sending stopped at message", "nothing was sent")
        self._sender = Sender(Spool(folder, ours=spool is None), broker, mark=False, watch=losses)
        self._over = threading.Event()
        self._ids: dict[str, int] = {}  # of sources by name
        self._failed_ids: set[int] = set()
        self._follower: NoticeFollower | None = None
        self._pipeline: Pipeline | None = None
        self._thread: threading.Thread | None = None

    def follow(self, pipeline: Pipeline) -> None:
        """Watch the sources of a pipeline from now on."""
        self._pipeline = pipeline
        self._follower = NoticeFollower(pipeline, self._tell)
        self._thread = start_thread(self._work, name="headrace-errors", failed=self._failed)

    def close(self) -> None:
        """Send the messages that wait."""
        self._over.set()
        if self._thread is not None:
            self._thread.join(_LOOK_S * 2)
            self._look()
        if left := self._sender.close(_DRAIN_S):
            text = f"{counted(left, 'message')} about sources wait for the next run"
            self.notices.append(Finding("messages-waiting", "warning", text, self.name))

    def _failed(self, error: Exception) -> None:
        text = f"errors of sources are not sent any more: {error_text(error)}"
        self.notices.append(Finding("watch-failed", "warning", text, self.name))

    def _work(self) -> None:
        while not self._over.wait(_LOOK_S):
            self._look()

    def _look(self) -> None:
        pipeline, follower = self._pipeline, self._follower
        assert pipeline is not None
        assert follower is not None
        for report in pipeline.snapshot().sources:
            self._ids[report.name] = report.source_id
            if report.state == "failed" and report.source_id not in self._failed_ids:
                self._failed_ids.add(report.source_id)
                self._send(report.source_id, report.name, "CRITICAL", report.error or "it failed")
        follower.look()

    def _tell(self, notices: list[Finding]) -> None:
        for notice in notices:
            number = self._ids.get(notice.where or "")
            if notice.code in _TYPES and number is not None:
                self._send(number, notice.where or "", _TYPES[notice.code], f"{notice:brief}")

    def _send(self, source_id: int, name: str, kind: str, text: str) -> None:
        message = {
            "stream_id": str(source_id),
            "timestamp": timestamp(datetime.now(UTC)),
            "type": kind,
            "source": name,
            "event": text,
        }
        self._sender.put(as_json(message))
