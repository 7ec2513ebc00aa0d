"""Figures for papers and talks, made with matplotlib and without its global state.

Every function returns a :class:`matplotlib.figure.Figure` that ``pyplot`` does not know: save it
with ``figure.savefig("sheet.png")``, or leave it as the last line of a notebook cell. A controller
that comes with tidegate has the same colour on every figure; your own controller has a colour that
no other controller on the figure has. Your own labels, as keys of the runs or by ``labels``, have the colour of the
controller that ran.

All functions take the same settings of form: ``size`` in inches, ``style`` (``"paper"``, ``"screen"`` or parameters of
matplotlib on top of :data:`STYLE`), ``title`` and ``labels``. A figure narrower than 5 inches has the style ``"paper"``
if none is given. Nothing is cut: texts are broken into lines, and a size without room for them is a ``ValueError``.

With several runs (seeds) of a controller, lines are medians over the seeds at each moment, and bands
reach from the smallest to the largest value. If the seeds have different links (a generated
capacity), medians would mean nothing: only the first seed is drawn, and the figure says so.
"""

from tidegate.show.plot.points import delay_cdf, rate_delay_scatter
from tidegate.show.plot.session import session
from tidegate.show.plot.sheet import comparison
from tidegate.show.plot.single_run import internals, time_series
from tidegate.show.plot.style import STYLE
from tidegate.show.plot.sweep import sweep

__all__ = ["STYLE", "comparison", "delay_cdf", "internals", "rate_delay_scatter", "session", "sweep", "time_series"]
