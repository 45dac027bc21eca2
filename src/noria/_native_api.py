"""What functions of the native core this Python code is written for: `make stubs`."""

__all__ = ["NATIVE_API"]

NATIVE_API = "646c4d0e9415"
