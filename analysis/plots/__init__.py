"""One module per figure, found by itself: a module here with `prepare` and `draw` is a plot. Shared parts: base, style.

prepare(comparison) -> DataFrame     the numbers, saved as CSV beside the figure; empty when there is nothing to show
draw(numbers, figure) -> None        drawing from these numbers alone
"""
