"""Digest of the native functions that this Python code is written for: `make stubs`."""

NATIVE_API = "0a297f87e7cd"
