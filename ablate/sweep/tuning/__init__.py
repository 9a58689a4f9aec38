"""Fair tuning: every variant gets the same search, and the chosen configs meet on seeds that chose nothing."""
