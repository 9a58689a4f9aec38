"""Position schemes, one final class per file; what they share is in `ablate.models.rotary` and `.causal`."""
