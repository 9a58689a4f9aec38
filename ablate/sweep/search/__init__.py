"""Hyper-parameter search: Hydra's sweep syntax as a search space, Optuna's ask-and-tell, runs as in any sweep."""
