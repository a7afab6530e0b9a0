"""Checks of files with figures."""

from pathlib import Path
from xml.etree import ElementTree

import matplotlib.image
import numpy as np

SVG = "{http://www.w3.org/2000/svg}"


def assert_drawn(*files: Path) -> None:
    """Asserts that PNG and SVG files can be read and are not empty."""
    for file in files:
        if file.suffix == ".svg":
            root = ElementTree.parse(file).getroot()
            assert root.tag == f"{SVG}svg", file
            marks = len([*root.iter(f"{SVG}path"), *root.iter(f"{SVG}use")])
        else:
            pixels = (255 * matplotlib.image.imread(file)).astype(np.uint8)
            marks = len(np.unique(pixels.view(np.uint32)))  # pixels of four bytes
        assert marks > 20, f"{file}: {marks} paths or colours"
