"""Caffe models: a network as text, weights beside it. No caffe needed."""

from __future__ import annotations

from noria.network.caffe.importer import network_from_caffe, network_from_caffe_bytes

__all__ = ["network_from_caffe", "network_from_caffe_bytes"]
