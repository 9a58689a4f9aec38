"""Sweeps: the plan (cells x seeds, what is left), the grid, progress and status."""
