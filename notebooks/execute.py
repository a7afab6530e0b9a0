"""Runs the notebook and stores its outputs in it.

    python notebooks/execute.py

Progress bars are stored in their final state. Messages of TensorFlow's libraries about
the machine go to the terminal. Files that the notebook writes are removed.
"""

import tempfile
from pathlib import Path

import nbclient
import nbformat

NOTEBOOK = Path(__file__).with_name("tour.ipynb")

notebook = nbformat.read(NOTEBOOK, as_version=4)
with tempfile.TemporaryDirectory() as folder:
    nbclient.NotebookClient(
        notebook,
        timeout=None,
        record_timing=False,
        coalesce_streams=True,
        extra_arguments=["--IPKernelApp.capture_fd_output=False"],
        resources={"metadata": {"path": folder}},
    ).execute()
nbformat.write(notebook, NOTEBOOK)
