"""Studies: one file for each table, figure or question, with the study's name."""
