"""Charts and pages for reports: one HTML file that asks nobody for anything.

What ``backtest`` and ``bench`` draw with. ``chart.line_chart`` and ``chart.scatter_chart`` return
a figure, ``page.table`` a table, ``page.page`` the whole file; styles are in ``style``. Nothing
here knows what is drawn, so nothing of a run, a score or a policy belongs here.
"""
