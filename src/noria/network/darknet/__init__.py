"""Darknet models: a network as .cfg text, .weights beside it. No darknet needed."""

from __future__ import annotations

from noria.network.darknet.importer import network_from_darknet, network_from_darknet_bytes

__all__ = ["network_from_darknet", "network_from_darknet_bytes"]
