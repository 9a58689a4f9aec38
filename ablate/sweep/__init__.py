"""Sweeps: the plan (cells x seeds, what is left), grid, blocks of seeds, search with Optuna, progress and status."""
