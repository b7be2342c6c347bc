"""How all pictures look."""

from typing import Any

INK = "#1b1b1f"
BLUE, ORANGE = "#0072b2", "#d55e00"  # a pair that colour-blind people tell apart
#: For several lines, as distinct as can be for colour-blind people (Okabe and Ito).
PALETTE = (BLUE, ORANGE, "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#4d4d4d")
STYLE: Any = {
    "font.size": 14,
    "axes.titlesize": 16,
    "axes.labelsize": 15,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 1.0,
    "axes.titlepad": 8,
}
