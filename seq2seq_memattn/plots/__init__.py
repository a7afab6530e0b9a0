"""Figures from plain data: curves, BLEU and time by length or window, alignments, positions."""

from seq2seq_memattn.packages import needed

with needed():  # matplotlib
    from seq2seq_memattn.plots.by_length import bleu_by_length as bleu_by_length
    from seq2seq_memattn.plots.by_length import step_time_by_length as step_time_by_length
    from seq2seq_memattn.plots.by_length import time_by_length as time_by_length
    from seq2seq_memattn.plots.curves import learning_curves as learning_curves
    from seq2seq_memattn.plots.curves import loss_curves as loss_curves
    from seq2seq_memattn.plots.curves import slot_use_curves as slot_use_curves
    from seq2seq_memattn.plots.heat_maps import Panel as Panel
    from seq2seq_memattn.plots.heat_maps import alignment as alignment
    from seq2seq_memattn.plots.heat_maps import alignments as alignments
    from seq2seq_memattn.plots.heat_maps import slots as slots
    from seq2seq_memattn.plots.style import Look as Look
    from seq2seq_memattn.plots.style import looks as looks
    from seq2seq_memattn.plots.style import save as save
    from seq2seq_memattn.plots.surface import position_surface as position_surface
    from seq2seq_memattn.plots.windows import bleu_by_window as bleu_by_window
