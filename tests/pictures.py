"""What a file with a figure must be."""

from pathlib import Path
from xml.etree import ElementTree

import matplotlib.image
import numpy as np

SVG = "{http://www.w3.org/2000/svg}"


def assert_drawn(*files: Path) -> None:
    """Asserts that PNG and SVG files can be read, and that something is drawn in them."""
    for file in files:
        if file.suffix == ".svg":
            root = ElementTree.parse(file).getroot()
            assert root.tag == f"{SVG}svg", file
            marks = len([*root.iter(f"{SVG}path"), *root.iter(f"{SVG}use")])
        else:
            pixels = (255 * matplotlib.image.imread(file)).astype(np.uint8)
            marks = len(np.unique(pixels.view(np.uint32)))  # of four bytes each
        assert marks > 20, f"{file}: {marks} paths or colours"
