"""Addresses of brokers: from URLs, and from the connection strings of the original's adaptors."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import SplitResult, unquote

from headrace._core.errors import MediaError


class _Protocol(NamedTuple):
    """Name in the environment, whether a topic is needed, characters that no topic has."""

    name: str
    topic: bool = True
    wildcards: str = ""


_PROTOCOLS = {
    "mqtt": _Protocol("MQTT", wildcards="#+"),
    "mqtts": _Protocol("MQTT", wildcards="#+"),
    "webhook+http": _Protocol("WEBHOOK", topic=False),
    "webhook+https": _Protocol("WEBHOOK", topic=False),
    "kafka": _Protocol("KAFKA"),
    "redis": _Protocol("REDIS"),
    "rediss": _Protocol("REDIS"),
    "amqp": _Protocol("AMQP"),
    "amqps": _Protocol("AMQP"),
    "events+file": _Protocol("FILE", topic=False),
}


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """Where messages go.

    Attributes:
        path: the topic, the stream or routing key; of web services and files the path.
        user, password: of the environment, `HEADRACE_<PROTOCOL>_USER` and
        `HEADRACE_<PROTOCOL>_PASSWORD`.
        options: keys of an adaptor's config file, such as `partition-key` or `streamsize`.
    """

    scheme: str
    host: str
    port: int | None
    path: str
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def from_url(
        cls,
        url: SplitResult,
        shown: str,
        *,
        user: str | None = None,
        options: Mapping[str, str] = MappingProxyType({}),
    ) -> BrokerAddress:
        """Take an address from a URL.

        Args:
            url: the parts.
            shown: the URL without secrets, for errors.
            user: in the place of the one of `options` and the environment.
            options: of an adaptor's config file; `username` and `password` are used, too.

        Raises:
            MediaError: the host or topic is missing, or the port is no port.
        """
        try:
            port = url.port
        except ValueError as error:
            raise MediaError("the port is not a number of 0 to 65535", where=shown) from error
        protocol = _PROTOCOLS[url.scheme]
        path = unquote(url.path.strip("/")) if protocol.topic else url.path
        if url.scheme == "events+file":
            name = unquote(f"{url.netloc}{path}").strip("/")
            if not name:
                raise MediaError(
                    "the file is missing", where=shown, expected="events+file:///PATH.jsonl"
                )
            return cls(url.scheme, "", None, f"/{name}")  # pipelines drop slashes of URLs
        if not url.hostname or not (path or not protocol.topic):
            missing = "topic" if url.hostname else "host"
            raise MediaError(
                f"the {missing} is missing", where=shown, expected=f"{url.scheme}://HOST/TOPIC"
            )
        parsed = cls(
            url.scheme, url.hostname, port, path, user or options.get("username"),
            options.get("password"), options,
        )  # fmt: skip
        return parsed._checked(shown)

    @classmethod
    def from_connection(
        cls, scheme: str, connection: str, topic: str, options: Mapping[str, str], shown: str
    ) -> BrokerAddress:
        """Take an address from a connection string `host;port;rest` of the original.

        `rest` is the topic of Kafka and the user of AMQP. Keys `hostname`, `port`, `username` and
        `topic` of the config file fill in for absent parts.

        Raises:
            MediaError: the host or topic is missing, or the port is no port.
        """
        host, port, rest = [*(p.strip() for p in connection.split(";")), "", "", ""][:3]
        host, port = host or options.get("hostname", ""), port or options.get("port", "")
        user = (rest if scheme == "amqp" else "") or options.get("username")
        topic = topic or (rest if scheme == "kafka" else "") or options.get("topic", "")
        if not host or not topic:
            raise MediaError(
                f"the {'topic' if host else 'host'} is missing", where=shown,
                expected="conn-str=HOST;PORT and topic=NAME",
            )  # fmt: skip
        if port and not (port.isascii() and port.isdigit() and 0 < int(port[:6]) < 1 << 16):
            raise MediaError("the port is not a number of 1 to 65535", where=shown)
        number = int(port) if port else None
        parsed = cls(scheme, host, number, topic, user, options.get("password"), options)
        return parsed._checked(shown)

    def _checked(self, shown: str) -> BrokerAddress:
        """The address with the environment's user and password where it has none."""
        protocol = _PROTOCOLS[self.scheme]
        if any(mark in self.path for mark in protocol.wildcards):
            raise MediaError(
                "the topic has a wildcard", where=shown, expected="a topic without # or +"
            )
        environment = f"HEADRACE_{protocol.name}"
        return BrokerAddress(
            self.scheme, self.host, self.port, self.path,
            self.user or os.environ.get(f"{environment}_USER"),
            self.password or os.environ.get(f"{environment}_PASSWORD"),
            self.options,
        )  # fmt: skip
