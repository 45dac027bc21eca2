"""GStreamer for the tests of the service maker, where it is installed."""

from __future__ import annotations

from tests.gstreamer import conftest

gst = conftest.gst  # a fixture
SCENE = conftest.SCENE
CONFIG = SCENE / "config_infer_primary.txt"
