"""Errors in the user's Python code, told by its own file and line."""

from noria._core.user_module import describe, user_frames

__all__ = ["describe", "user_frames"]
