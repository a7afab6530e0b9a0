"""The HTTP side of the server: paths, access control and the web page."""
