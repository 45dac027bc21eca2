"""Configs of deepstream-app and test5, read as pipelines. Start at `file.py`."""
