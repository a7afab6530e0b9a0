"""What the site's pages need beside Sphinx and MyST."""
