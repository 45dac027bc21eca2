"""Checks in a copy of the process: a call has the time, not the check."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

from headrace.diagnose.plugin_check.isolation import in_copy
from headrace.plugins.calls import Instance

STOPPED = """
import time
from headrace.diagnose.plugin_check.isolation import in_copy
print("ready", flush=True)
print(in_copy(lambda: time.sleep(1), limit_s=2)[1])
"""


class Slow:
    """A plugin whose calls take a while each."""

    def initialize(self) -> int:
        time.sleep(0.5)
        return 0


def test_calls_that_return_may_take_longer_together_than_one_may() -> None:
    slow = Instance(Slow(), "slow")

    def many() -> int:
        return sum(int(str(slow.call("build", "initialize"))) for _ in range(6))

    assert in_copy(many, limit_s=2) == (0, None)
    _, breach = in_copy(lambda: time.sleep(60), limit_s=1)
    assert breach is not None
    assert breach.clause == "returns"


def test_time_of_stopped_processes_does_not_count() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STOPPED], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.3)
        os.killpg(process.pid, signal.SIGSTOP)
        time.sleep(3)
        os.killpg(process.pid, signal.SIGCONT)
        assert process.communicate(timeout=60)[0] == "None\n"


def test_a_process_that_a_plugin_forks_answers_nothing() -> None:
    def forks() -> int:
        os.fork()
        return 7

    assert in_copy(forks) == (7, None)
