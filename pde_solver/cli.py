"""The command `pde-solver`. What takes long to import is imported by the command that needs it."""

import importlib.metadata
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from pde_solver.command import FAILED, guarded, say

app = typer.Typer(
    help="Mean-field continuity equation of transformers: finite volumes, discontinuous Galerkin, particles.",
    epilog="Every command also runs under mpiexec -n P.",
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

CaseFile = Annotated[Path, typer.Argument(metavar="CASE", help="the case file (TOML)")]
Overrides = Annotated[
    list[str] | None,
    typer.Argument(metavar="KEY=VALUE", help="changes to it, for example model.attention.0.beta=8"),
]


def _show_version(wanted: bool) -> None:
    if wanted:
        say(f"pde-solver {importlib.metadata.version('pde-solver')}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="show the version and leave", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Without a command, show the help."""
    if context.invoked_subcommand is None:
        say(context.get_help())


@app.command()
def run(
    case: CaseFile,
    changes: Overrides = None,
    output: Annotated[
        Path | None, typer.Option(metavar="DIR", help="where the results go [default: CASE's name]")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="replace the results that are there")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="go on from the newest checkpoint there")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="no progress and no table")] = False,
) -> Any:
    """Run a case and keep its results in a directory."""
    from pde_solver.case.run import run_case

    completed = run_case(case, changes or [], output=output, overwrite=overwrite, resume=resume, quiet=quiet)
    return 0 if completed else FAILED


@app.command()
def check(case: CaseFile, changes: Overrides = None) -> None:
    """Show the resolved case and its cost, without running it."""
    from pde_solver.case import load_case
    from pde_solver.case.estimate import estimate

    loaded = load_case(case, changes or [])
    say(f"{loaded.text}\n{estimate(loaded)}")


@app.command()
def converge(
    case: CaseFile,
    changes: Annotated[
        list[str],
        typer.Argument(metavar="KEY=VALUE,...", help="what is varied, for example mesh.cells=64,128,256; and changes"),
    ],
    output: Annotated[
        Path | None, typer.Option(metavar="DIR", help="where all goes [default: CASE's name and -convergence]")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="run everything anew")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="the tables alone")] = False,
) -> None:
    """Run a case at several resolutions and show how fast its error falls; the same command goes on where it stopped."""
    from pde_solver.studies import study_case

    study = study_case(case, changes, output=output, overwrite=overwrite, quiet=quiet)
    say(str(study) if quiet else f"\n{study}\n\nStudy: {study.folder}")


@app.command()
def compare(
    reference: Annotated[Path, typer.Argument(metavar="REFERENCE", help="a directory of results")],
    others: Annotated[list[Path], typer.Argument(metavar="DIR...", help="directories to compare with it")],
    replicas: Annotated[
        list[Path] | None,
        typer.Option("--replica", metavar="DIR", help="an independent run of the reference (another seed); repeatable"),
    ] = None,
) -> None:
    """Show how far results differ from those of a reference, and how much of that may be chance."""
    from pde_solver.case.compare import comparison

    say(comparison(reference, others, replicas or []))


@app.command()
def validate(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="the claims to check [default: all]")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="with coarse resolutions: minutes instead of half an hour")
    ] = False,
    output: Annotated[Path, typer.Option(metavar="DIR", help="where report.html and results.csv go")] = Path(
        "validation-report"
    ),
    suite: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="the folder of the claims [default: validation, here or the project's]"),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="the last line alone")] = False,
) -> Any:
    """Check every claim of the validation suite and write a report."""
    from pde_solver.validation.run import validate as examine_claims

    passed = examine_claims(names or [], suite=suite, output=output, quick=quick, quiet=quiet)
    return 0 if passed else FAILED


@app.command()
def doctor() -> Any:
    """Say what is missing here and how to install it."""
    from pde_solver.doctor import examine

    findings = examine()
    width = max(len(finding.subject) for finding in findings)
    for finding in findings:
        say(f"{'MISSING' if finding.remedy else 'ok':7}  {finding.subject:{width}}  {finding.found}")
    for finding in findings:
        if finding.remedy:
            say(f"pde-solver needs {finding.subject}: {finding.found}. Try: {finding.remedy}", error=True)
    return FAILED if any(finding.remedy for finding in findings) else 0


def main() -> None:
    """The console script."""
    sys.exit(guarded(lambda: app(standalone_mode=False)))
