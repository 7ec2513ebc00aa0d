"""Figures for papers and talks, made with matplotlib and without its global state.

Every function returns a :class:`matplotlib.figure.Figure` that is not known to ``pyplot``: save it
with ``figure.savefig("sheet.png")``, or leave it as the last line of a notebook cell. A controller
that comes with tidegate has the same colour on every figure, and one of one's own a colour that
nobody else on it has. A label of one's own has the colour of the controller that ran.

Where several runs (seeds) of one controller are given, lines are medians over the seeds at each
moment and bands reach from the smallest to the largest of them. Seeds that saw different links (a
generated capacity) have no common moment, so that then the first seed is drawn alone and the figure
says so.
"""

from tidegate.show.plot.one import internals, time_series
from tidegate.show.plot.points import delay_cdf, rate_delay_scatter
from tidegate.show.plot.session import session
from tidegate.show.plot.sheet import comparison
from tidegate.show.plot.style import STYLE
from tidegate.show.plot.sweep import sweep

__all__ = ["STYLE", "comparison", "delay_cdf", "internals", "rate_delay_scatter", "session", "sweep", "time_series"]
