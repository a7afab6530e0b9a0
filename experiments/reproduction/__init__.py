"""What studies are made of: rows, the commands that run them, their results and pages."""
