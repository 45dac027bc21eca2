"""GStreamer elements under the original's names, over the same inference, tracking and drawing.

Start at `element.py`.
"""
