"""Figures from plain data: curves, BLEU and time by length, by window, alignments, positions."""

from .by_length import bleu_by_length as bleu_by_length
from .by_length import time_by_length as time_by_length
from .curves import learning_curves as learning_curves
from .curves import loss_curves as loss_curves
from .heat_maps import Panel as Panel
from .heat_maps import alignment as alignment
from .heat_maps import alignments as alignments
from .heat_maps import slots as slots
from .style import Look as Look
from .style import looks as looks
from .style import save as save
from .surface import position_surface as position_surface
from .windows import bleu_by_window as bleu_by_window
