import json
import tomllib

import numpy as np

from pde_solver.output import read_frames, read_history, read_laws


def test_one_and_two_ranks_have_the_same_history(results):
    one, two = (read_history(results / name / "history.csv") for name in ("one", "two"))
    assert list(one) == ["mass", "interaction_energy", "order_parameter"]
    for name, (times, values) in one.items():
        # output exactly at k · every, by definition of the case
        np.testing.assert_allclose(times, np.arange(6) / 10, rtol=1e-15)
        # only the order of summation differs between numbers of ranks
        np.testing.assert_allclose(two[name][1], values, rtol=0, atol=1e-11)
    assert one["order_parameter"][1][-1] > one["order_parameter"][1][0] + 0.01  # attention gathers tokens


def test_what_lies_in_the_directory(results):
    folder = results / "two"
    names = {path.name for path in folder.iterdir()}
    assert names == {"case.toml", "info.json", "history.csv", "laws.h5", "fields.vtkhdf", "checkpoints"}
    assert tomllib.loads((folder / "case.toml").read_text())["discretisation"] == {"kind": "finite-volume", "order": 2}
    info = json.loads((folder / "info.json").read_text())
    assert info["completed"]
    assert info["ranks"] == 2
    assert info["mesh_digest"] == json.loads((results / "one" / "info.json").read_text())["mesh_digest"]
    assert info["versions"]["pde_solver"]
    laws = read_laws(folder / "laws.h5")
    assert [t for t, _ in laws] == [0, 0.25, 0.5]
    for _, law in laws:
        assert abs(law.mass()[0] - 1) < 1e-12


def test_the_story_is_told_once_whatever_the_number_of_ranks(results):
    told = (results / "two.txt").read_text()
    assert told.count("Reached t = 0.5") == 1
    assert told.count("order_parameter") == 1
    assert told.endswith(f"Results: {results / 'two'}\n")


def test_an_existing_directory_is_refused_overwritten_or_left_as_it_is(results, pde_solver, tmp_path):
    case, folder = results / "case.toml", tmp_path / "out"
    folder.mkdir()
    (folder / "mine.txt").write_text("precious")
    refused = pde_solver("run", case, "--output", folder, ranks=2)
    assert refused.returncode == 2
    assert refused.stderr.splitlines() == [
        f"{folder}: is not empty; say --overwrite to replace its results, or --resume to go on."
    ]
    done = pde_solver("run", case, "time.stop=0.1", "output.every=0.1", "--quiet", "--overwrite", "--output", folder)
    assert done.returncode == 0, done.stderr
    assert (done.stdout, done.stderr) == ("", "")
    assert (folder / "mine.txt").read_text() == "precious"
    assert not (folder / ".lock").exists()
    kept = (folder / "history.csv").read_bytes()
    wrong = pde_solver("run", case, "initial.mean=[1, 0, 0]", "--overwrite", "--output", folder)
    assert wrong.returncode == 2
    assert (folder / "history.csv").read_bytes() == kept


def test_a_resumed_run_is_the_uninterrupted_one(results, pde_solver, tmp_path):
    case, folder = results / "case.toml", tmp_path / "out"
    assert pde_solver("run", case, "time.stop=0.25", "--output", folder).returncode == 0
    resumed = pde_solver("run", case, "--resume", "--output", folder, ranks=2)
    assert resumed.returncode == 0, resumed.stderr
    assert resumed.stdout.startswith("Resumed at t = 0.25.\n")
    whole, parts = (read_history(place / "history.csv") for place in (results / "one", folder))
    for name, (times, values) in whole.items():
        # the shorter run also recorded at its own stop, 0.25
        kept = [int(np.abs(parts[name][0] - t).argmin()) for t in times]
        np.testing.assert_allclose(parts[name][0][kept], times, rtol=0, atol=1e-14)
        np.testing.assert_allclose(parts[name][1][kept], values, rtol=0, atol=1e-11)
    again = pde_solver("run", case, "--resume", "--output", folder)
    assert again.returncode == 0
    assert again.stdout == "Nothing to do: the run is complete.\n"


def test_a_run_that_was_killed_while_it_drew_is_completed(results, pde_solver, tmp_path):
    case, folder = results / "case.toml", tmp_path / "out"
    arguments = (case, "output.figure=true", "--output", folder)
    assert pde_solver("run", *arguments, "time.stop=0.25").returncode == 0
    first = (folder / "summary.png").read_bytes()
    assert pde_solver("run", *arguments, "--resume", "--quiet").stdout == ""
    assert (folder / "summary.png").read_bytes() != first
    # the depths before the resumption are in the picture, for it is drawn from this file
    assert [frame.t for frame in read_frames(folder / "fields.vtkhdf", (1.0,))] == [0, 0.25, 0.5]
    drawn = (folder / "summary.png").read_bytes()
    info = json.loads((folder / "info.json").read_text())
    (folder / "summary.png").unlink()
    (folder / "info.json").write_text(json.dumps({"outcome": "not finished"}))
    again = pde_solver("run", *arguments, "--resume", ranks=2)
    assert (again.returncode, again.stdout) == (0, "Nothing to do: the run is complete.\n")
    assert (folder / "summary.png").read_bytes() == drawn
    completed = json.loads((folder / "info.json").read_text())
    assert completed["completed"]
    assert completed["outcome"].startswith("Reached t = 0.5 in ")
    assert completed["case_digest"] == info["case_digest"]


def test_errors_come_once_and_without_a_traceback(results, pde_solver):
    wrong = pde_solver("run", results / "case.toml", "model.attention.0.beta=-1", "mesh.level=2", ranks=2)
    assert wrong.returncode == 2
    assert wrong.stdout == ""
    assert [line.split(": ", 1)[1] for line in wrong.stderr.splitlines()] == [
        "model.attention[0].beta: found -1, must be a number ≥ 0",
        'mesh.level: does not apply to kind = "circle"; it belongs to "icosphere"',
    ]


def test_a_run_that_a_guard_ends_has_status_1(results, pde_solver, tmp_path):
    stopped = pde_solver("run", results / "case.toml", "time.max_steps=1", "--quiet", "--output", tmp_path / "out")
    assert stopped.returncode == 1
    assert "Traceback" not in stopped.stderr
    assert len(stopped.stderr.splitlines()) == 1
    info = json.loads((tmp_path / "out" / "info.json").read_text())
    assert not info["completed"]
    assert (tmp_path / "out" / "history.csv").exists()
