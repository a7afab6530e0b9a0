"""The paths of the server, who may ask, and the page that browsers get."""
