"""Pure statistics: arrays in, small frozen records out.

Nothing here reads files, knows what a study is, or formats a number. Intervals are two-sided; a difference is always
variant minus baseline, in the unit of the metric.
"""
