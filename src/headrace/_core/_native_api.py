"""Digest of the native functions that this Python code is written for: `make stubs`."""

NATIVE_API = "a47db5db7599"
