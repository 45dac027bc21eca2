"""Compile users' libraries from their sources."""
