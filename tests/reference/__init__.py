"""The papers' equations in plain NumPy loops, which share no code with the library."""
