"""Servers of brokers that tests and benchmarks start on loopback, where their programs are."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.ports import free_port

# Debian's rabbitmq-server of /usr/sbin changes the user: the one behind it runs as the caller
_PATH = f"/usr/lib/rabbitmq/bin:{os.environ.get('PATH', '')}:/usr/sbin"
_START_S = 60.0


def program(name: str) -> str | None:
    """The path of a server's program; None without it."""
    return shutil.which(name, path=_PATH)


@contextmanager
def served(
    *words: str, port: int | None = None, environment: Mapping[str, str] | None = None
) -> Iterator[int]:
    """Run a server of one port, and yield that; `PORT` in its words becomes it.

    Args:
        words: its program and arguments; the test is skipped without the program.
        port: a free one without it.
        environment: variables that it needs beside those of this process.
    """
    path = program(words[0])
    if path is None:
        pytest.skip(f"needs the server {words[0]}")
    port = port or free_port()
    process = subprocess.Popen(
        [path, *(word.replace("PORT", str(port)) for word in words[1:])],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        env=os.environ | (environment or {}),
    )  # fmt: skip
    try:
        wait_for_port(process, port)
        yield port
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # what a script of its has started, too
        process.wait()


def wait_for_port(process: subprocess.Popen[bytes], port: int) -> None:
    """Wait until a server listens."""
    end = time.monotonic() + _START_S
    while True:
        assert process.poll() is None, f"{process.args!r} does not start"
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1.0):
            return
        assert time.monotonic() < end, f"{process.args!r} does not listen"
        time.sleep(0.05)


@contextmanager
def rabbitmq(folder: Path) -> Iterator[int]:
    """Run RabbitMQ with all of its files in a folder, and yield its port."""
    if program("rabbitmq-server") is None:
        pytest.skip("needs the server rabbitmq-server")
    # a name server of its own: RabbitMQ starts one that outlives it
    with served("epmd", "-port", "PORT", environment={"ERL_EPMD_ADDRESS": "127.0.0.1"}) as names:
        port = free_port()
        environment = rabbitmq_environment(folder, port) | {"ERL_EPMD_PORT": str(names)}
        with served("rabbitmq-server", port=port, environment=environment):
            yield port


def rabbitmq_environment(folder: Path, port: int) -> dict[str, str]:
    """Variables that keep RabbitMQ in a folder and on loopback; writes the files they name."""
    plugins, config = folder / "enabled_plugins", folder / "rabbit.conf"
    plugins.write_text("[].")
    config.write_text(f"listeners.tcp.1 = 127.0.0.1:{port}\n")
    return {
        "HOME": str(folder), "RABBITMQ_NODENAME": f"headrace{port}@localhost",
        "RABBITMQ_CONFIG_FILE": str(config), "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
        "RABBITMQ_LOG_BASE": str(folder / "log"), "RABBITMQ_PID_FILE": str(folder / "pid"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(plugins), "RABBITMQ_DIST_PORT": str(free_port()),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
    }  # fmt: skip
