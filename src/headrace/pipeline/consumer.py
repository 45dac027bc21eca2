"""Messages to a running pipeline: they start and stop recordings."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

from headrace._core.errors import HeadraceError
from headrace._core.findings import Finding
from headrace._core.notices import note_once
from headrace._core.retry import Backoff
from headrace._core.text import error_text, quoted, shortened
from headrace._core.threads import start_thread
from headrace._core.urls import url_name
from headrace.media.messages.commands import record_command, sensor_numbers
from headrace.media.messages.converter import read_adaptor_config
from headrace.media.messages.receivers import receiver_for
from headrace.media.sources.reconnect import Losses

if TYPE_CHECKING:
    from headrace.config.pipeline_spec import ConsumerSpec
    from headrace.pipeline.pipeline import Pipeline

_BACKOFF = Backoff(0.5, 10.0)
_END_S = 2.0
_SHOWN = 200
_MOST_NOTED = 20


class Consumer:
    """Takes messages of a broker in a thread of its own, from `follow` to `close`.

    A message names a sensor: a source by its number, or as `sensors` of the spec names it. One that
    cannot be read, or names no source, is a notice of the run and no more.

    Args:
        spec: where messages come from.

    Attributes:
        notices: messages that meant nothing, and connections that were lost.

    Raises:
        HeadraceError: the URL is none, a file cannot be read, or a client is not installed.
    """

    def __init__(self, spec: ConsumerSpec) -> None:
        self.name = url_name(spec.uri)
        options = dict(read_adaptor_config(spec.adaptor)) if spec.adaptor is not None else {}
        self._receiver = receiver_for(spec.uri, options)
        path: Path | None = spec.sensors
        self._numbers = None if path is None else sensor_numbers(path)
        self.notices: list[Finding] = []
        self._losses = Losses(self.notices, self.name, "messages stopped behind", "none came")
        self._over = threading.Event()
        self._pipeline: Pipeline | None = None
        self._thread: threading.Thread | None = None
        self._came = 0

    def follow(self, pipeline: Pipeline) -> None:
        """Take messages for a pipeline from now on."""
        self._pipeline = pipeline
        self._thread = start_thread(self._work, name="headrace-consumer", failed=self._failed)

    def close(self) -> None:
        """Take no more."""
        self._over.set()
        if self._thread is not None:
            self._thread.join(_END_S)
        self._losses.stopped()

    def _failed(self, error: Exception) -> None:
        self._losses.lost(shortened(error_text(error), _SHOWN), self._came)

    def _work(self) -> None:
        attempt = 0
        try:
            while not self._over.is_set():
                try:
                    messages = self._receiver.receive()
                except Exception as error:  # a client's library may raise anything
                    cause = shortened(" ".join(error_text(error).split()), _SHOWN)
                    self._losses.lost(cause, self._came)
                    self._losses.tried(cause)
                    self._receiver.close()
                    self._over.wait(_BACKOFF.delay_s(attempt))
                    attempt += 1
                    continue
                attempt = 0
                if self._losses.away:
                    self._losses.back()
                for message in messages:
                    self._came += 1
                    self._act(message)
        finally:
            self._receiver.close()

    def _act(self, message: bytes) -> None:
        try:
            command = record_command(message)
        except ValueError as error:
            self._note("message-unread", f"a message is left out: {error}")
            return
        if self._numbers is not None:
            source = self._numbers.get(command.sensor)
        else:
            decimal = command.sensor.isascii() and command.sensor.isdecimal()
            source = int(command.sensor[:9]) if decimal else None
        pipeline = self._pipeline
        assert pipeline is not None
        done = False
        if source is not None:
            try:
                if command.start:
                    done = pipeline.record_clip(
                        source, back_s=command.back_s, length_s=command.length_s
                    )
                else:
                    done = pipeline.stop_clip(source)
            except HeadraceError as error:
                self._note("message-unread", f"a message is left out: {error:brief}")
                return
        if not done:
            sensor = quoted(shortened(command.sensor, 40))
            self._note("message-unread", f"a message names the sensor {sensor}: no source there")

    def _note(self, code: str, text: str) -> None:
        if len(self.notices) < _MOST_NOTED:
            note_once(self.notices, Finding(code, "warning", text, self.name))
