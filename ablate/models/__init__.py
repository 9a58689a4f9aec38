"""Models and, in `attention`, the ways they can know positions. Imports torch and nothing of the project outside."""
