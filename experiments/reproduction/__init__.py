"""The parts of studies: rows, the commands that run them, their results and pages."""
