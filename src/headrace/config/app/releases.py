"""Keys of deepstream-app that some releases read and others do not.

A file that is run for one generation (`--generation`) behaves as that release: it warns of such a
key and goes on without it. Without a generation every key of every release counts. Facts: the
parsers of the releases 4.0 to 9.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from headrace.config.enums import Generation

# group -> keys by the first release that reads them, later than 6.2
_SINCE = {
    "application": {
        "6.3": "reid-track-output-dir",
        "6.4": "terminated-track-output-dir shadow-track-output-dir global-gpu-id",
    },
    "tiled-display": {"7.0": "square-seq-grid"},
    "sourceN": {
        "7.0": "extract-sei-type5-data",
        "7.1": "copy-hw",
        "8.0": "set-rtp-protocol init-rtsp-reconnect-interval-sec leaky max-size-buffers"
        " buffer-mode drop-on-latency sensorID-padID-mapping",
        "9.0": "simulate-fps-interval-ms",
    },
    "source-list": {
        "6.4": "sensor-name-list stream-name-display",
        "7.0": "extract-sei-type5-data sei-uuid low-latency-mode",
        "8.0": "dummy-payload custom-ts-to-rfc batched-sensor-name",
        "9.0": "enable-error-propagation proto-lib conn-str topic",
    },
    "streammux": {
        "7.0": "extract-sei-type5-data",
        "8.0": "sync-inputs-ntp config-file-path extract-sei-sim-time align-first-buffer"
        " cache-buffer cache-buffer-timeout sort-batch",
        "9.0": "drop-backward-sei failsafe-flush-count",
    },
    "primary-gie": {
        "9.0": "model-variant device min-crop-size verbose backend triton-url triton-model"
    },
    "tracker": {
        "6.3": "user-meta-pool-size",
        "6.4": "sub-batches",
        "7.0": "sub-batch-err-recovery-trial-cnt",
        "9.0": "operate-on-class-ids",
    },
    "sinkN": {
        "6.3": "sw-preset",
        "7.0": "msg-conv-dummy-payload sleep-time",
        "7.1": "compute-hw",
        "8.0": "msg-conv-embedding-filter",
        "9.0": "nvdslogger show-fps show-latency",
    },
    "message-converter": {"7.0": "msg-conv-dummy-payload", "8.0": "msg-conv-embedding-filter"},
    "ds-example": {"7.0": "batch-size"},
    "dewarperN": {"6.3": "num-output-buffers"},
}
# group -> keys by the last release that reads them, before 9.1
_UNTIL = {
    "streammux": {"7.1": "config-file"},
    "tracker": {"6.2": "enable-batch-process enable-past-frame"},
    "sinkN": {"6.0.1": "display-id overlay-id offset-x offset-y"},
    "dewarperN": {"7.0": "num-out-buffers"},
}
_TWINS = {"source-attr-all": "sourceN", "secondary-gieN": "primary-gie"}
_GROUPS_SINCE = {
    "segvisual": "6.3",
    "visionencoder": "9.0",
    "text-embedder": "9.0",
    "replay": "9.0",
}
_PAYLOADS_SINCE = {2: "6.3"}  # msg-conv-payload-type
LISTS_AGREE_SINCE = "6.4"
"""From here on the lists of `[source-list]` must have as many entries as `num-source-bins`."""


def unread_key(group: str, key: str, generation: Generation | None) -> str | None:
    """Say which releases read a key, where the generation is none of them; else None.

    Args:
        group: its kind, `sinkN` for numbered ones.
        key: its name.
        generation: None is all releases.
    """
    group = _TWINS.get(group, group)
    return _missed(generation, _release(_SINCE, group, key), _release(_UNTIL, group, key))


def unread_group(group: str, generation: Generation | None) -> str | None:
    """Say which releases read a group, as `unread_key` does."""
    if re.fullmatch("dewarper", group):  # without a number
        return _missed(generation, None, "6.2")
    return _missed(generation, _GROUPS_SINCE.get(group), None)


def unread_payload(number: int, generation: Generation | None) -> str | None:
    """Say which releases make a type of payload, as `unread_key` does."""
    return _missed(generation, _PAYLOADS_SINCE.get(number), None)


def is_before(generation: Generation | None, release: str) -> bool:
    """Whether a generation is older than a release."""
    return generation is not None and _numbers(generation) < _numbers(release)


def release_keys() -> Iterator[tuple[str, str]]:
    """List group and name of every key of the tables."""
    for table in (_SINCE, _UNTIL):
        for group, releases in table.items():
            for names in releases.values():
                for name in names.split():
                    yield group, name


def _release(table: dict[str, dict[str, str]], group: str, key: str) -> str | None:
    releases = table.get(group, {})
    return next((release for release, names in releases.items() if key in names.split()), None)


def _missed(generation: Generation | None, since: str | None, until: str | None) -> str | None:
    if generation is None:
        return None
    if since is not None and is_before(generation, since):
        return f"from {since} on"
    if until is not None and _numbers(generation) > _numbers(until):
        return f"up to {until}"
    return None


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))
