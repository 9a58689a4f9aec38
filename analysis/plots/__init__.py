"""One module per figure, found by itself: a module here with `prepare` and `draw` is a plot. Shared parts: base, style.

prepare(comparison) -> DataFrame           the numbers, saved as CSV beside the figure; empty for no figure
prepare_search(search), prepare_tuning(tuning)  in its place in a figure of a search, of a tuning
prepare_aggregate(aggregate) -> DataFrame  in its place in a figure of the scores over several tasks
draw(numbers, figure) -> None              drawing from these numbers alone
"""
