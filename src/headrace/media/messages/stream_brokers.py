"""Brokers that keep messages: Kafka, Redis streams, and files of JSON Lines."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headrace._core.exchange import ANSWER_S, Exchange
from headrace._core.files import cut_torn_line
from headrace._core.lazy import import_extra
from headrace.media.messages.address import BrokerAddress
from headrace.media.messages.connections import kafka_settings, redis_pool

_LOOK_S = 0.1  # between two looks at whether anybody still waits
_GOODBYE_S = 0.1
_MOST_BYTES = 1 << 20  # of an answer of a Kafka broker


class KafkaBroker:
    """Produces with acknowledgement of all replicas in sync.

    Options: `partition-key` (a path in the JSON such as `sensor.id`) and `proto-cfg`
    (`key=value;…` for librdkafka).
    """

    def __init__(self, address: BrokerAddress) -> None:
        self._address = address
        self._key = [p for p in address.options.get("partition-key", "").split(".") if p]
        self._producer: Any = None
        self._exchange = Exchange()

    def publish(self, messages: Sequence[bytes]) -> Sequence[bytes]:
        """Produce to the topic; an OSError if one is not acknowledged in time."""
        kafka = import_extra("confluent_kafka", "kafka")
        producer, topic = self._connected(kafka), self._address.path
        refused: list[bytes] = []
        failed: list[str] = []
        pending = len(messages)
        content = (kafka.KafkaError.MSG_SIZE_TOO_LARGE, kafka.KafkaError.INVALID_MSG)

        def delivered(error: Any, message: Any) -> None:
            nonlocal pending
            pending -= 1
            if error is None:
                return
            if error.code() in content:
                refused.append(message.value())
            else:
                failed.append(error.str())

        for message in messages:
            try:
                producer.produce(topic, message, self._key_of(message), on_delivery=delivered)
            except kafka.KafkaException as error:
                if error.args[0].code() not in content:
                    raise ConnectionError(error.args[0].str()) from error
                refused.append(message)
                pending -= 1
            except BufferError as error:
                raise ConnectionError(str(error)) from error
        self._exchange.begin(sum(map(len, messages)))
        while pending and not failed:
            producer.poll(self._exchange.left_s(_LOOK_S))
        if failed:
            raise ConnectionError(failed[0])
        return refused

    def close(self) -> None:
        """Forget the producer; messages that it still holds are sent again by the next."""
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.purge()
            producer.flush(_GOODBYE_S)

    def stop(self) -> None:
        """Let `publish` come back."""
        self._exchange.stop()

    def _key_of(self, message: bytes) -> str | None:
        if not self._key:
            return None
        value: Any = None
        with contextlib.suppress(ValueError):
            value = json.loads(message)
        for name in self._key:
            value = value.get(name) if isinstance(value, dict) else None
        return value if isinstance(value, str) else None

    def _connected(self, kafka: Any) -> Any:
        if self._producer is None:
            milliseconds = int(ANSWER_S * 1000)
            settings = kafka_settings(
                self._address,
                acks="all",
                message_timeout_ms=milliseconds,
                socket_connection_setup_timeout_ms=milliseconds,
                receive_message_max_bytes=_MOST_BYTES,
                linger_ms=0,
            )
            try:
                self._producer = kafka.Producer(settings)
            except kafka.KafkaException as error:
                raise ConnectionError(error.args[0].str()) from error
        return self._producer


class RedisBroker:
    """Adds to a stream with XADD, a batch in one round trip.

    Options: `payloadkey` (the field, `metadata` by default) and `streamsize` (the stream is cut
    to about so many entries; without it it grows).
    """

    def __init__(self, address: BrokerAddress) -> None:
        self._address = address
        self._exchange = Exchange()
        self._client: Any = None

    def publish(self, messages: Sequence[bytes]) -> Sequence[bytes]:
        """Add the messages; an OSError if the server does not answer for all."""
        redis = import_extra("redis", "redis")
        address, options = self._address, self._address.options
        self._exchange.begin(sum(map(len, messages)))
        if self._client is None:
            self._client = redis.Redis(connection_pool=redis_pool(redis, address, self._exchange))
        size = options.get("streamsize", "")
        limit = int(size) if size.isascii() and size.isdigit() else None
        try:
            pipe = self._client.pipeline(transaction=False)
            for message in messages:
                pipe.xadd(
                    address.path, {options.get("payloadkey", "metadata"): message}, maxlen=limit
                )
            pipe.execute()
        except redis.RedisError as error:
            raise ConnectionError(str(error)) from error
        return ()

    def close(self) -> None:
        """Close the connection."""
        client, self._client = self._client, None
        if client is not None:
            client.connection_pool.disconnect()

    def stop(self) -> None:
        """Let `publish` come back."""
        self._exchange.stop()


class FileBroker:
    """Appends to a file, a line each."""

    def __init__(self, address: BrokerAddress) -> None:
        self._path = Path(address.path)

    def publish(self, messages: Sequence[bytes]) -> Sequence[bytes]:
        """Append and flush to the disk."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a+b") as file:
            if file.seekable():
                cut_torn_line(file.fileno())  # of a run that was killed, or a disk that was full
            file.write(b"".join(message + b"\n" for message in messages))
            file.flush()
            os.fsync(file.fileno())
        return ()

    def close(self) -> None:
        """Do nothing: each batch opens the file."""

    def stop(self) -> None:
        """Do nothing: the disk alone is waited for."""
