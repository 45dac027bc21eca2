"""Stages, bounded queues, threads, back-pressure."""
