import numpy as np
import pytest

from pde_solver.densities import PointCloud
from pde_solver.errors import InputError
from pde_solver.manifolds import Euclidean, Sphere

SQUARE = np.array([[1.0, 0], [0, 1], [-1, 0], [0, -1]])


def test_the_cloud_itself_or_draws_from_it():
    rng = np.random.default_rng(0)
    np.testing.assert_array_equal(PointCloud(SQUARE).sample(4, rng, Sphere(2)), SQUARE)
    tokens = PointCloud(SQUARE, [1, 0, 3, 0]).sample(4000, rng, Sphere(2))
    assert set(map(tuple, tokens)) == {(1, 0), (-1, 0)}
    assert abs(np.mean(tokens[:, 0] > 0) - 0.25) < 4 * (0.25 * 0.75 / 4000) ** 0.5
    # unequal weights: the cloud as it is would be another law
    assert set(PointCloud(SQUARE, [1, 0, 0, 0]).sample(4, rng, Sphere(2))[:, 0]) == {1}


def test_weights_and_points_are_kept():
    cloud = PointCloud(SQUARE.tolist(), [1, 1, 2, 4])
    np.testing.assert_array_equal(cloud.points, SQUARE)
    np.testing.assert_array_equal(cloud.weights, [0.125, 0.125, 0.25, 0.5])
    assert repr(cloud) == "PointCloud(4 weighted points in R^2)"
    assert repr(PointCloud(SQUARE)) == "PointCloud(4 points in R^2)"
    with pytest.raises(ValueError, match="read-only"):
        cloud.points[0, 0] = 3


def test_on_the_manifold():
    nearly = SQUARE * (1 + 5e-7)
    np.testing.assert_allclose(np.linalg.norm(PointCloud(nearly).tokens_on(Sphere(2)), axis=1), 1, atol=1e-15)
    off = SQUARE.copy()
    off[2] *= 1.001
    with pytest.raises(InputError, match=r"point 2 lies 0\.001 off the circle \(allowed: 1e-06\); divide the points"):
        PointCloud(off).sample(3, np.random.default_rng(0), Sphere(2))
    with pytest.raises(InputError, match=r"points have 2 coordinates, but tokens on the sphere S\^2 have 3"):
        PointCloud(SQUARE).tokens_on(Sphere(3))
    np.testing.assert_array_equal(PointCloud(off).tokens_on(Euclidean(2)), off)


def test_no_density():
    with pytest.raises(InputError, match="deposited"):
        PointCloud(SQUARE).density(SQUARE, Sphere(2))


def test_bad_arguments():
    for bad in ([1.0, 2.0], np.zeros((0, 2)), np.zeros((2, 2, 2)), [[1], [2, 3]], "x"):
        with pytest.raises(InputError, match="PointCloud: points must be an array"):
            PointCloud(bad)
    with pytest.raises(InputError, match=r"all coordinates must be finite, found \[3.0, nan\] in row 1"):
        PointCloud([[1, 2], [3, np.nan]])
    for bad in ([1, 1], [1, 1, 1, -1], [0, 0, 0, 0]):
        with pytest.raises(InputError, match="4 points need as many weights ≥ 0, not all zero"):
            PointCloud(SQUARE, bad)


def test_files(tmp_path):
    np.save(tmp_path / "good.npy", SQUARE)
    np.testing.assert_array_equal(PointCloud.load(tmp_path / "good.npy").points, SQUARE)
    np.save(tmp_path / "whole numbers.npy", SQUARE.astype(int))
    np.testing.assert_array_equal(PointCloud.load(str(tmp_path / "whole numbers.npy")).points, SQUARE)
    whole = (tmp_path / "good.npy").read_bytes()
    (tmp_path / "truncated.npy").write_bytes(whole[:-9])
    (tmp_path / "empty.npy").write_bytes(b"")
    (tmp_path / "text.npy").write_text("1 2 3")
    np.savez(tmp_path / "several.npz", a=SQUARE)
    np.save(tmp_path / "complex.npy", SQUARE * 1j)
    np.save(tmp_path / "words.npy", np.array([["a", "b"]]))
    np.save(tmp_path / "objects.npy", np.array([[{}, 1]], dtype=object))
    for name, sentence in {
        "missing.npy": "there is no file",
        ".": "cannot be read: Is a directory",
        "truncated.npy": "is no whole NumPy file",
        "empty.npy": "is no whole NumPy file",
        "text.npy": "is no whole NumPy file",
        "objects.npy": "is no whole NumPy file",
        "several.npz": "holds several arrays",
        "complex.npy": "must hold real numbers, found the type complex128",
        "words.npy": "must hold real numbers",
    }.items():
        with pytest.raises(InputError, match=sentence):
            PointCloud.load(tmp_path / name)


def test_every_rank_hears_of_a_bad_file(on_ranks, tmp_path):
    np.save(tmp_path / "good.npy", SQUARE)
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\n"
        "from pde_solver.densities import PointCloud\n"
        "from pde_solver.errors import InputError\n"
        f"sys.stdout.write(repr(PointCloud.load(r'{tmp_path}/good.npy')))\n"
        "try:\n"
        f"    PointCloud.load(r'{tmp_path}/missing.npy')\n"
        "except InputError as error:\n"
        "    sys.stdout.write(str(error))\n"
    )
    result = on_ranks(script, 2, timeout=60)
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("there is no file") == 2
    assert result.stdout.count("PointCloud(4 points in R^2)") == 2
