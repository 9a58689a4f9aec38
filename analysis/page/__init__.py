"""report.html: one self-contained page for people, rendered from comparisons, tables and figures made elsewhere.

`render` puts it together, `tables` turns a table into HTML, `runs` lists every run and says where a number's runs are,
`curves` makes the interactive figure. The template, style sheet and script are in `analysis/templates`.
"""
