"""Sphinx extensions that the site's pages need."""
