"""A straight line through the levels at equal points of the steps, with its uncertainty.

scipy would do, but importing it takes longer than the whole analysis of a small trace.
"""

from __future__ import annotations

import math

from tracelock.trace.columns import Int64

# Student's t at 0.975 for 1..10 degrees of freedom; beyond them the expansion below is exact to 6e-5.
_T_975 = (12.7062, 4.30265, 3.18245, 2.77645, 2.57058, 2.44691, 2.36462, 2.30600, 2.26216, 2.22814)
_Z_975 = 1.959963984540054


def student_t_975(freedom: int) -> float:
    """Return the 0.975 quantile of Student's t distribution with `freedom` >= 1 degrees of freedom.

    Cornish-Fisher expansion around the normal quantile (Abramowitz and Stegun 26.7.5) for more than ten.
    """
    if freedom <= len(_T_975):
        return _T_975[freedom - 1]
    z = _Z_975
    first = (z**3 + z) / (4 * freedom)
    second = (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3)
    return z + first + second + third


def slope(levels: Int64, places: Int64) -> tuple[float | None, tuple[float, float] | None]:
    """Return the least-squares slope of `levels` per step, and its 95 % confidence interval.

    Parameters
    ----------
    levels
        The level at equal points of steps, shape (n,). Below three points there is no slope: two always lie on a
        line, which says nothing of the next step.
    places
        Which step each point is of, ascending, shape (n,); 0, 1, 2, ... unless steps between are left out.

    """
    count = len(levels)
    if count < 3:
        return None, None
    steps = places - places.mean()
    values = levels - levels[0]  # exact in int64; the sums below then run over small numbers
    squares = float(steps @ steps)
    rise = float(steps @ values) / squares
    rest = values - values.mean() - rise * steps
    error = math.sqrt(float(rest @ rest) / (count - 2) / squares)
    reach = student_t_975(count - 2) * error
    return rise, (rise - reach, rise + reach)
