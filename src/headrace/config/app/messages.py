"""Sinks of messages in deepstream-app configs: `[sinkN]` with `type=6`, as URLs of outputs."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, urlencode

from headrace._core.errors import ConfigError
from headrace.config.app.reader import FoundGroup
from headrace.config.app.releases import unread_payload
from headrace.config.enums import Generation

if TYPE_CHECKING:
    from headrace.config.values import Values


_LIBRARY = re.compile(r"libnvds_(kafka|mqtt|redis|amqp)_proto")
_SCHEMAS = ("deepstream", "minimal", "protobuf")
_OTHER_SCHEMAS = {
    256: "the original reserves it and makes nothing of it",
}
_ADAPTORS = "libnvds_kafka_proto.so, …_mqtt_…, …_redis_… or …_amqp_…"
_CUSTOM = 257
_INTERVAL = 30  # the original's default


class LeftOut(NamedTuple):
    """Why an element cannot run here, and the way on."""

    cause: str
    way: str


def adaptor_protocol(library: str) -> str:
    """The protocol of an adaptor library, by its file's name; the library is not loaded.

    Raises:
        ConfigError: the name is that of no adaptor that Headrace stands for.
    """
    match = _LIBRARY.match(PurePath(library).name)
    if match is None:
        raise ConfigError(f"{library!r} is no known adaptor.", expected=_ADAPTORS)
    return match[1]


def errors_url(section: FoundGroup) -> str | LeftOut:
    """The URL that gets the errors of sources, by the keys of `[source-list]`, or why none does."""
    library, connection = section.get("proto-lib"), section.get("conn-str")
    match = _LIBRARY.match(PurePath(library).name) if library else None
    if match is None:
        named = f"{library!r} is no known adaptor" if library else "no proto-lib"
        return LeftOut(named, f"it takes {_ADAPTORS}")
    host, port, _ = [*(p.strip() for p in (connection or "").split(";")), "", "", ""][:3]
    if not host:
        return LeftOut("no conn-str", "it takes conn-str=HOST;PORT")
    authority = f"{quote(host, safe='.-[]:')}{f':{quote(port)}' if port else ''}"
    topic = quote(section.get("topic") or "deepstream", safe="")
    return f"{match[1]}://{authority}/{topic}"


def consumer_url(section: FoundGroup) -> str | LeftOut:
    """The URL of a consumer that does as `[message-consumerN]`, or why there is none."""
    library, connection = section.get("proto-lib"), section.get("conn-str")
    topics = [text.strip() for text in section.get("subscribe-topic-list") or () if text.strip()]
    for key, value in (("proto-lib", library), ("conn-str", connection)):
        if not value:
            return LeftOut(f"no {key}", f"the original takes {key} as of a broker sink")
    if not topics:
        return LeftOut("no subscribe-topic-list", "it takes names of topics with ; between them")
    match = _LIBRARY.match(PurePath(library).name)
    if match is None:
        return LeftOut(f"{library!r} is no known adaptor", f"it takes {_ADAPTORS}")
    host, port, user = [*(p.strip() for p in connection.split(";")), "", "", ""][:3]
    if not host:
        return LeftOut("no host", "it takes conn-str=HOST;PORT")
    authority = f"{quote(host, safe='.-[]:')}{f':{quote(port)}' if port else ''}"
    query = f"?{urlencode({'user': user})}" if match[1] == "amqp" and user else ""
    names = ",".join(quote(topic, safe="") for topic in topics)
    return f"{match[1]}://{authority}/{names}{query}"


def message_url(section: FoundGroup, generation: Generation | None = None) -> str | LeftOut:
    """The URL of an output that does as a sink of the type 6, or why there is none.

    Args:
        section: the group.
        generation: release whose payloads are made; None makes those of all.
    """
    library, connection = section.get("msg-broker-proto-lib"), section.get("msg-broker-conn-str")
    if not library:
        return LeftOut("no msg-broker-proto-lib", f"it takes {_ADAPTORS}")
    name = PurePath(library).name
    if "azure" in name:
        return LeftOut(
            f"{name} speaks to Azure alone, and nothing here does",
            "an IoT hub takes MQTT and AMQP: libnvds_mqtt_proto.so, or -o "
            "webhook+https://HOST/PATH to a function of Azure",
        )
    match = _LIBRARY.match(name)
    if match is None:
        return LeftOut(f"{library!r} is no known adaptor", f"it takes {_ADAPTORS}")
    scheme = match[1]
    host, port, rest = [*(p.strip() for p in (connection or "").split(";")), "", "", ""][:3]
    topic = section.get("topic") or (rest if scheme == "kafka" else "")
    if not host or not topic:
        missing = "topic" if host else "host"
        return LeftOut(f"no {missing}", "it takes msg-broker-conn-str=HOST;PORT and topic=NAME")
    number = section.get("msg-conv-payload-type", 0)
    releases, library_path = unread_payload(number, generation), section.get("msg-conv-msg2p-lib")
    if number == _CUSTOM and library_path is None:
        cause = "msg-conv-payload-type=257: no msg-conv-msg2p-lib"
        return LeftOut(cause, "it takes the library that makes the payloads")
    schema = "custom" if number == _CUSTOM else None
    if schema is None and 0 <= number < len(_SCHEMAS):
        schema = _SCHEMAS[number]
    if schema is None or releases is not None:
        cause = _OTHER_SCHEMAS.get(number, "the original knows no such type")
        if releases is not None:
            cause = f"{generation} does not make it, but releases {releases}"
        way = "0 is full, 1 minimal, 2 Protobuf"
        return LeftOut(f"msg-conv-payload-type={number}: {cause}", way)
    # without the new interface test5 sends every object of every frame, boxes in source pixels
    options: Values = {"every": "frame", "boxes": "source", "schema": schema}
    if section.get("msg-conv-msg2p-new-api"):
        every = max(1, section.get("msg-conv-frame-interval", _INTERVAL))
        options = {"every": every, "schema": schema}
    if library_path is not None:
        options["library"] = library_path
        if not section.get("msg-conv-msg2p-new-api"):
            options["interface"] = "events"
    for option, key in (("config", "msg-conv-config"), ("adaptor", "msg-broker-config")):
        if section.get(key) is not None:
            options[option] = section.get(key)
    component = section.get("msg-conv-comp-id") or 0
    sender = section.get("msg-broker-comp-id") or 0
    if sender and sender != component:
        cause = f"msg-broker-comp-id={sender} takes messages of the converter with that "
        cause += f"msg-conv-comp-id alone, and it has {component}"
        return LeftOut(cause, "give both the same number, or leave msg-broker-comp-id out")
    if component:
        options["component"] = component
    if section.get("msg-conv-dummy-payload"):
        options["empty"] = 1
    if section.get("custom-ts-to-rfc"):
        options["time"] = "stream"
    if section.get("sleep-time"):
        options["pause"] = section.get("sleep-time") / 1000
    if section.get("debug-payload-dir") is not None:
        options["copies"] = section.get("debug-payload-dir")
    if scheme == "amqp" and rest:
        options["user"] = rest
    authority = f"{quote(host, safe='.-[]:')}{f':{quote(port)}' if port else ''}"
    return f"{scheme}://{authority}/{quote(topic, safe='')}?{urlencode(options, quote_via=quote)}"
