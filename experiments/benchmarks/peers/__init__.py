"""Scripts that measure this project and other systems by one protocol."""
