"""Digest of the native functions that this Python code is written for: `make stubs`."""

NATIVE_API = "71b91ac5e0fe"
