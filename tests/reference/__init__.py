"""The papers' equations once more, in plain NumPy loops; they share no code with the library."""
