"""Errors of calls between C++ and Python, gathered for one message."""

from __future__ import annotations

from headrace._core.errors import PluginError
from headrace.trt.host.callback_errors import collected_errors, report_failure, report_log

INTERNAL, ERROR, WARNING, INFO = 0, 1, 2, 3  # severities as TensorRT counts them


def test_the_reason_is_failures_and_the_loggers_errors_without_its_warnings() -> None:
    with collected_errors() as collected:
        report_log(WARNING, "weights are large")
        report_failure("enqueue", PluginError("no input", where="layer 'a'", fix="connect it"))
        report_log(ERROR, "layer a failed")
        report_log(INTERNAL, "out of memory")
        report_log(INFO, "building")
    assert collected.reason == "enqueue: layer 'a': no input; layer a failed; out of memory"
    assert collected.hints == ["connect it"]


def test_nothing_is_gathered_after_the_block() -> None:
    with collected_errors() as collected:
        pass
    report_failure("enqueue", "late")
    report_log(ERROR, "late")
    assert collected.reason == ""
