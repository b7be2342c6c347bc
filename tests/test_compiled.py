import importlib.util

import numpy as np
import pytest
from numba.core import caching, config

from pde_solver.compiled import compiled


@compiled
def reciprocals(values, result):
    for i in range(len(values)):
        result[i] = 1.0 / values[i]


def test_division_by_zero_is_numpys():
    result = np.empty(3)
    reciprocals(np.array([2.0, 0.0, -0.0]), result)
    assert result.tolist() == [0.5, np.inf, -np.inf]


@pytest.fixture
def twice(tmp_path, monkeypatch):
    """A way to define the same compiled function afresh, as a new process would, with a cache of its own."""
    source = tmp_path / "mine.py"
    source.write_text("from pde_solver.compiled import compiled\n\n@compiled\ndef twice(x):\n    return 2 * x\n")
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "cache"))

    def define():
        specification = importlib.util.spec_from_file_location("mine", source)
        module = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(module)
        return module.twice

    return define


def came_from_disk(function):
    """Call the function; whether its machine code was read and not made."""
    assert function(3.0) == 6.0
    return bool(sum(function.stats.cache_hits.values()))


def test_machine_code_is_kept(twice):
    assert not came_from_disk(twice())
    assert came_from_disk(twice())


def test_a_damaged_cache_costs_a_compilation(twice, tmp_path):
    assert not came_from_disk(twice())
    files = list((tmp_path / "cache").rglob("*.nb?"))
    assert files
    for file in files:
        file.write_bytes(file.read_bytes()[:40])
    assert not came_from_disk(twice())


def test_a_full_disk_costs_a_compilation(twice, monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(caching.IndexDataCacheFile, "_save_index", full)
    assert not came_from_disk(twice())
    assert not came_from_disk(twice())


def test_nowhere_to_write(twice, monkeypatch):
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])
    assert not came_from_disk(twice())
    assert not came_from_disk(twice())
