"""Digest of the native functions that this Python code is written for: `make stubs`."""

NATIVE_API = "9d1ab65700ad"
