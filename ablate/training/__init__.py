"""Training one run: the loop, evaluation, checkpoints, schedules and random streams. No task or model by name."""
