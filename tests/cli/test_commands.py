import os
import re
import subprocess
import sys
import time

import numpy as np
import pytest
from conftest import launch


def test_help_is_quick():
    # The limit is half a second of work; wall time would measure the other programs on this machine.
    spent = []
    for _ in range(3):
        child = subprocess.Popen([sys.executable, "-m", "pde_solver", "--help"], stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        assert status == 0
        spent.append(usage.ru_utime + usage.ru_stime)
    assert min(spent) < 0.5


def test_help_names_the_commands(pde_solver):
    shown = pde_solver()
    assert shown.returncode == 0
    for command in ("run", "check", "converge", "compare", "validate", "doctor"):
        assert re.search(rf"^  {command}  ", shown.stdout, flags=re.MULTILINE)
    assert pde_solver("--version").stdout.startswith("pde-solver ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["frob"], "pde-solver: No such command 'frob'. Try: pde-solver --help"),
        (["run"], "pde-solver: Missing argument 'CASE'. Try: pde-solver --help"),
        (["run", "x.toml", "--fast"], "pde-solver: No such option: --fast. Try: pde-solver --help"),
    ],
)
def test_a_wrong_command_line_is_one_line_and_status_2(pde_solver, arguments, message):
    wrong = pde_solver(*arguments)
    assert (wrong.returncode, wrong.stderr, wrong.stdout) == (2, f"{message}\n", "")


def test_check_shows_the_resolved_case_and_its_cost(results, pde_solver):
    shown = pde_solver("check", results / "case.toml", "mesh.cells=48", ranks=2)
    assert shown.returncode == 0, shown.stderr
    assert "geometry_degree = 3" in shown.stdout  # a default, written out
    assert "48 cells, 48 unknowns on 2 ranks" in shown.stdout
    for name in ("mesh", "method", "velocity", "stage", "step", "cost", "memory"):
        assert len(re.findall(rf"^{name}  ", shown.stdout, flags=re.MULTILINE)) == 1


def test_compare_shows_every_quantity_and_the_distance_of_the_laws(results, pde_solver):
    shown = pde_solver("compare", results / "one", results / "two")
    assert shown.returncode == 0, shown.stderr
    table = shown.stdout
    for name in ("mass", "interaction_energy", "order_parameter"):
        last = re.search(rf"^{name} at t = 0.5 +(\S+) +(\S+)$", table, flags=re.MULTILINE)
        assert last is not None
        assert abs(float(last[2])) < 1e-11
    # the same law from one and two ranks: distance 0 up to rounding
    distance = re.search(r"^W₁, exact on the circle at t = 0.5 +(\S+)$", table, flags=re.MULTILINE)
    assert distance is not None
    assert float(distance[1]) < 1e-11


def test_compare_says_what_is_missing(results, pde_solver, tmp_path):
    missing = pde_solver("compare", results / "one", tmp_path)
    assert missing.returncode == 2
    assert missing.stderr.startswith(f"{tmp_path}: holds no results of a finished run (there is no case.toml)")


def test_compare_takes_replicas_of_the_reference(pde_solver, results, tmp_path):
    particles = ["mesh=", "discretisation={kind='particles',count=50}", "time.stop=0.1", "--quiet"]
    folders = [tmp_path / f"tokens-{seed}" for seed in (1, 2, 3)]
    for seed, folder in enumerate(folders):
        done = pde_solver("run", results / "case.toml", *particles, f"discretisation.seed={seed}", "--output", folder)
        assert done.returncode == 0, done.stderr
    replicas = ["--replica", folders[1], "--replica", folders[2]]
    shown = pde_solver("compare", folders[0], *replicas, results / "one", ranks=2)
    assert shown.returncode == 0, shown.stderr
    assert re.search(r"^quantity +mean of 3 +± \(one run\) +one$", shown.stdout, flags=re.MULTILINE)
    assert re.search(r"^order_parameter at t = 0.1 +\S+ +\S+ +\S+ \(\d+\.\dσ\)$", shown.stdout, flags=re.MULTILINE)
    refused = pde_solver("compare", folders[0], "--replica", results / "one", results / "two", ranks=2)
    assert refused.returncode == 2
    assert len(refused.stderr.splitlines()) == 1
    assert "a replica differs in the seed alone" in refused.stderr


def test_two_ranks_compare_results_that_began_with_a_point_cloud(pde_solver, results, tmp_path):
    angles = np.linspace(0.0, 2.0, 50_000)  # more than MPI sends without the other side waiting for it
    np.save(tmp_path / "tokens.npy", np.column_stack([np.cos(angles), np.sin(angles)]))
    cloud = f"{{law='point-cloud',path='{tmp_path / 'tokens.npy'}'}}"
    plain = ["mesh=", "discretisation={kind='particles',count=40}", "time.stop=0.1", "--quiet"]
    laws = {"cloud": cloud, "mixture": f"{{law='mixture',components=[{cloud},{{law='uniform'}}]}}"}
    for name, law in laws.items():
        done = pde_solver("run", results / "case.toml", *plain, f"initial={law}", "--output", tmp_path / name)
        assert done.returncode == 0, done.stderr
    # one rank reads the results; it must not wait for the other to read the points
    shown = pde_solver("compare", tmp_path / "cloud", tmp_path / "mixture", ranks=2, timeout=40)
    assert shown.returncode == 0, shown.stderr
    assert "order_parameter at t = 0.1" in shown.stdout


def test_check_refuses_the_step_that_run_refuses(results, pde_solver, tmp_path):
    refused = [
        pde_solver("check", results / "case.toml", "time.step=10"),
        pde_solver("run", results / "case.toml", "time.step=10", "--output", tmp_path / "out", ranks=2),
    ]
    for done in refused:
        assert done.returncode == 2
        assert re.fullmatch(r"time: step = 10 exceeds the stability limit .*\n", done.stderr)
    assert refused[0].stderr == refused[1].stderr
    assert not (tmp_path / "out").exists()  # so that the next try is not refused


def test_check_of_a_huge_case_answers_at_once(results, pde_solver):
    sphere = ["model.manifold=sphere", "model.dimension=3", "initial.mean=[0, 0, 1]"]
    mesh = "mesh={kind='icosphere',level=12}"
    began = time.monotonic()
    refused = pde_solver("check", results / "case.toml", *sphere, mesh, timeout=20)
    assert time.monotonic() - began < 15
    assert refused.returncode == 2, refused.stderr
    assert len(refused.stderr.splitlines()) == 1
    assert refused.stdout == ""


def test_doctor_is_content_here(pde_solver):
    examined = pde_solver("doctor")
    assert examined.returncode == 0, examined.stdout
    assert "MISSING" not in examined.stdout
    for subject in ("Python", "C compiler", "DOLFINx", "MPI", "MPI launcher", "numba", "h5py"):
        assert re.search(rf"^ok       {subject}  ", examined.stdout, flags=re.MULTILINE)


def test_doctor_names_the_missing_compiler_and_the_command_that_installs_it(pde_solver):
    examined = pde_solver("doctor", CC="/nowhere/cc")
    assert examined.returncode == 1
    assert examined.stderr == "pde-solver needs C compiler: missing. Try: apt-get install gcc libc6-dev\n"


def test_a_foreign_launcher_is_named_in_one_line(pde_solver):
    refused = pde_solver("doctor", OMPI_COMM_WORLD_SIZE="2", OMPI_COMM_WORLD_RANK="0")
    assert refused.returncode == 2
    line = refused.stderr.splitlines()[-1]
    assert line.startswith(
        "pde-solver: started by Open MPI's mpirun, but DOLFINx here is built for MPICH: start it with "
    )
    assert pde_solver("doctor", OMPI_COMM_WORLD_SIZE="2", OMPI_COMM_WORLD_RANK="1").stdout == ""


FAILING = """
import sys
from mpi4py import MPI
import pde_solver.parallel
from pde_solver.command import guarded
from pde_solver.errors import InputError

def command():
    MPI.COMM_WORLD.Barrier()
    if MPI.COMM_WORLD.rank == 1:
        raise {error}
    MPI.COMM_WORLD.Barrier()
    return 0

sys.exit(guarded(command))
"""


@pytest.mark.parametrize(
    ("error", "status", "told"),
    [
        ('ValueError("broken")', 1, "[rank 1] Traceback"),
        ("KeyboardInterrupt", 130, "[rank 1] pde-solver: interrupted."),
        ('InputError("only rank 1 minds")', 2, "[rank 1] only rank 1 minds"),
    ],
)
def test_one_failing_rank_ends_the_job(tmp_path, error, status, told):
    script = tmp_path / "failing.py"
    script.write_text(FAILING.format(error=error))
    began = time.monotonic()
    ended = launch(script, ranks=2, timeout=20)
    assert time.monotonic() - began < 10
    assert ended.returncode == status
    assert told in ended.stderr
