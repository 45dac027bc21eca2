"""What functions of the native core this Python code is written for: `make stubs`."""

__all__ = ["NATIVE_API"]

NATIVE_API = "5495f30514c4"
