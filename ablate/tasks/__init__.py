"""Sequence tasks, one file each; `base` says what a task is."""
