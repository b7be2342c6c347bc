"""Every result file says what computed it, and VTK's reader does not mind."""

import importlib.metadata

import h5py
from output_fakes import Patches

from pde_solver.output.fields import FieldWriter
from pde_solver.output.laws import LawWriter


def test_result_files_name_their_versions(tmp_path):
    snapshot = Patches().snapshot(0.0)
    for writer, path in ((FieldWriter, tmp_path / "fields.vtkhdf"), (LawWriter, tmp_path / "laws.h5")):
        writer(path).write(snapshot)
        with h5py.File(path) as file:
            said = file.attrs["versions"]
        assert f"pde_solver {importlib.metadata.version('pde-solver')}" in said
        assert "petsc 3." in said
        assert "dolfinx 0." in said
