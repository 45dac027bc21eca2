"""Digest of the native functions that this Python code is written for: `make stubs`."""

NATIVE_API = "8167493f3ce6"
