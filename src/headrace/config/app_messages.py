"""Sinks of messages in deepstream-app configs: `[sinkN]` with `type=6`, as URLs of outputs."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from headrace._core.errors import ConfigError
from headrace.config.app_reader import FoundGroup

if TYPE_CHECKING:
    from headrace.config.values import Values


_LIBRARY = re.compile(r"libnvds_(kafka|mqtt|redis|amqp)_proto")
_SCHEMAS = ("deepstream", "minimal")
_INTERVAL = 30  # the original's default


def adaptor_protocol(library: str) -> str:
    """The protocol of an adaptor library, by its file's name; the library is not loaded.

    Raises:
        ConfigError: the name is that of no adaptor that Headrace stands for.
    """
    match = _LIBRARY.match(PurePath(library).name)
    if match is None:
        raise ConfigError(
            f"{library!r} is no known adaptor.",
            expected="libnvds_kafka_proto.so, …_mqtt_…, …_redis_… or …_amqp_…",
        )
    return match[1]


def message_url(section: FoundGroup) -> str:
    """The URL of an output that does as a sink of the type 6.

    Raises:
        ConfigError: the adaptor, host or topic is missing, or of an unknown kind.
    """
    library, connection = section.get("msg-broker-proto-lib"), section.get("msg-broker-conn-str")
    if not library:
        raise ConfigError("no msg-broker-proto-lib.", expected="such as libnvds_mqtt_proto.so")
    scheme = adaptor_protocol(library)
    host, port, rest = [*(p.strip() for p in (connection or "").split(";")), "", "", ""][:3]
    topic = section.get("topic") or (rest if scheme == "kafka" else "")
    if not host or not topic:
        raise ConfigError(
            f"no {'topic' if host else 'host'}.",
            expected="msg-broker-conn-str=HOST;PORT and topic=NAME",
        )
    number = section.get("msg-conv-payload-type", 0)
    if number >= len(_SCHEMAS):
        raise ConfigError(
            f"msg-conv-payload-type={number} is not made here.", expected="0 (full) or 1 (minimal)"
        )
    interval = max(1, section.get("msg-conv-frame-interval", _INTERVAL))
    options: Values = {"every": interval, "schema": _SCHEMAS[number]}
    for option, key in (("config", "msg-conv-config"), ("adaptor", "msg-broker-config")):
        if section.get(key) is not None:
            options[option] = section.get(key)
    if scheme == "amqp" and rest:
        options["user"] = rest
    authority = f"{quote(host, safe='.-[]:')}{f':{quote(port)}' if port else ''}"
    return f"{scheme}://{authority}/{quote(topic, safe='')}?{urlencode(options, quote_via=quote)}"
