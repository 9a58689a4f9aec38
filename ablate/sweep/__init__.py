"""Sweeps: the plan (cells x seeds, what is left), the grid, blocks of seeds, search with Optuna, progress and status."""
