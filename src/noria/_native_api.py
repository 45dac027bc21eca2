"""What functions of the native core this Python code is written for: `make stubs`."""

__all__ = ["NATIVE_API"]

NATIVE_API = "3c9ffc0a84f0"
