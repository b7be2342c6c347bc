"""The report: one HTML page that stands alone, with every check, its figure, its case, and what went wrong."""

import html
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path

from markdown_it import MarkdownIt
from mpi4py import MPI

from pde_solver.output.atomic import write_atomically
from pde_solver.output.versions import versions
from pde_solver.validation.figures import Picture, pictures
from pde_solver.validation.machine import machine
from pde_solver.validation.trial import Trial
from pde_solver.validation.verdict import PASSED, Verdict

Examined = Sequence[tuple[Trial, list[Verdict]]]

#: What the sources that name no paper are counted under.
NO_PAPER = "derived for this project alone"
PAPERS_NOTE = (
    "A paper is counted where the source of a check names it. Where the source says “derived for this project”, the value itself "
    "is no statement of that paper."
)
_ARXIV = re.compile(r"arXiv:(\d{4}\.\d{4,5})")


def write_report(
    path: Path,
    examined: Examined,
    *,
    quick: bool,
    seconds: float,
    known_papers: Mapping[str, str],
    comm: MPI.Comm,
) -> None:
    """Write the page, replacing it as a whole. Collective.

    Args:
        path: the page.
        examined: the trials and the verdicts of all claims.
        quick: whether the coarse resolutions were taken.
        seconds: wall time of everything.
        known_papers: arXiv number -> authors and title, for the summary.
        comm: the ranks that ran the checks.
    """

    def write(temporary: Path) -> None:
        temporary.write_text(page(examined, quick, seconds, known_papers), encoding="utf-8")

    write_atomically(comm, path, write)


def page(examined: Examined, quick: bool, seconds: float, known_papers: Mapping[str, str]) -> str:
    """The page as text."""
    verdicts = [verdict for _, found in examined for verdict in found]
    style = (files("pde_solver.validation") / "report.css").read_text(encoding="utf-8")
    passed = sum(verdict.word == PASSED for verdict in verdicts)
    good = passed == len(verdicts)
    ranks = max((verdict.ranks for verdict in verdicts), default=1)
    how = "coarse resolutions (--quick)" if quick else "all resolutions"
    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    where = f"{ranks} rank{'s' if ranks > 1 else ''}"
    others = "" if good else f", {len(verdicts) - passed} did not"
    said = f"{passed} of {len(verdicts)} checks passed"
    parts = [
        f'<header><h1>Validation of pde_solver</h1><p class="verdict {"good" if good else "bad"}">{said}{others}</p>'
        f"<p>{made} · {how} · {_duration(seconds)} on {where}</p></header>",
        _failures(verdicts),
        _contents(examined),
        _counts(
            "By paper",
            "paper",
            verdicts,
            lambda v: papers(v.check.source) if v.check else ["not reached"],
            known_papers,
        ),
        f'<p class="note">{PAPERS_NOTE}</p>',
        '<div class="beside">',
        _counts(
            "By discretisation", "method", verdicts, lambda v: [v.check.method or "none" if v.check else "not reached"]
        ),
        "<div>",
        _table("Machine", ["", ""], [[key, value] for key, value in machine().items()]),
        _table("Versions", ["", ""], [[key, value] for key, value in versions().items()]),
        "</div></div>",
        *(_claim(trial, found) for trial, found in examined if found),
    ]
    head = [
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>Validation of pde_solver: {said}</title>\n<style>\n{style}</style>\n</head>\n<body>",
    ]
    return "\n".join([*head, *filter(None, parts), "</body>\n</html>\n"])


def papers(source: str) -> list[str]:
    """The papers that a source names, "arXiv:2312.10794"; or that there is none."""
    return [f"arXiv:{number}" for number in dict.fromkeys(_ARXIV.findall(source))] or [NO_PAPER]


def _failures(verdicts: Iterable[Verdict]) -> str:
    wrong = [v for v in verdicts if v.word != PASSED]
    if not wrong:
        return ""
    items = "".join(f'<li><a href="#{_anchor(v.claim.name)}">{_text(str(v))}</a></li>' for v in wrong)
    return f'<section class="failures"><h2>What did not pass</h2><ul>{items}</ul></section>'


def _contents(examined: Examined) -> str:
    rows = []
    for _, found in examined:
        if not found:
            continue
        claim = found[0].claim
        passed, seconds = sum(v.word == PASSED for v in found), sum(v.seconds for v in found)
        mark = _mark(passed == len(found), f"{passed} / {len(found)}")
        rows.append([f'<a href="#{_anchor(claim.name)}">{_text(claim.title)}</a>', mark, _duration(seconds)])
    return _table("Claims", ["claim", "passed", "time"], rows, raw=True)


def _counts(
    title: str,
    head: str,
    verdicts: Iterable[Verdict],
    keys: Callable[[Verdict], list[str]],
    described: Mapping[str, str] | None = None,
) -> str:
    total: Counter[str] = Counter()
    passed: Counter[str] = Counter()
    for verdict in verdicts:
        for key in keys(verdict):
            total[key] += 1
            passed[key] += verdict.word == PASSED
    rows = []
    for key, n in sorted(total.items()):
        words = [] if described is None else [_text(described.get(key.removeprefix("arXiv:"), ""))]
        rows.append([_linked(key), *words, _mark(passed[key] == n, f"{passed[key]} / {n}")])
    return _table(title, [head, *([] if described is None else [""]), "passed"], rows, raw=True)


def _claim(trial: Trial, verdicts: Sequence[Verdict]) -> str:
    claim = verdicts[0].claim
    drawn = pictures([v.check for v in verdicts if v.check is not None], _anchor(claim.name))
    numbers: dict[int, list[int]] = {}
    for picture in drawn:
        for check in picture.checks:
            numbers.setdefault(id(check), []).append(picture.number)
    rows, tracebacks = [], []
    for v in verdicts:
        mark = _mark(v.word == PASSED, v.word)
        if v.check is None:
            rows.append([_text(v.function), mark, *[""] * 5, _seconds(v.seconds), str(v.ranks), ""])
            tracebacks.append(f"<h4>{_text(v.function)}</h4><pre class='traceback'>{_text(v.traceback)}</pre>")
            continue
        check, (measured, expected) = v.check, v.check.worst
        bound = {"at most": "≤ ", "at least": "≥ "}.get(check.relation, "")
        kind = " (rel.)" if check.relation == "relative" else ""
        links = [f'<a href="#{_anchor(claim.name)}-{number}">{number}</a>' for number in numbers.get(id(check), [])]
        figure = ", ".join(links) or "exact"
        quantity = f"{_text(check.quantity)}<small>{_text(check.method)}</small>"
        rows.append(
            [
                quantity,
                mark,
                f"{_number(measured)}",
                f"{bound}{_number(expected)}",
                f"{_size(check.error)}{kind}",
                _size(check.tolerance),
                _linked(check.source),
                _seconds(v.seconds),
                str(v.ranks),
                figure,
            ]
        )
    head = ["quantity", "verdict", "measured", "expected", "error", "tolerance", "source", "s", "ranks", "figure"]
    return (
        f'<section class="claim" id="{_anchor(claim.name)}"><h2>{_text(claim.title)}</h2><p class="name">{_text(claim.name)}</p>'
        + f'<div class="page">{MarkdownIt("commonmark").enable("table").render(claim.page)}</div>'
        + _table("", head, rows, raw=True, name="checks")
        + "".join(tracebacks)
        + _figures(claim.name, drawn)
        + _cases(trial)
        + "</section>"
    )


def _figures(name: str, drawn: Sequence[Picture]) -> str:
    shown = []
    for picture in drawn:
        marks = "".join(f'<li><b style="color:{m.colour}">{m.symbol}</b> {_text(m.label)}</li>' for m in picture.legend)
        legend = f'<ul class="legend">{marks}</ul>' if marks else ""
        caption = f"<figcaption><b>Figure {picture.number}.</b> {_text(picture.caption)}{legend}</figcaption>"
        shown.append(f'<figure id="{_anchor(name)}-{picture.number}">{picture.svg}{caption}</figure>')
    return f'<div class="figures">{"".join(shown)}</div>' if shown else ""


def _cases(trial: Trial) -> str:
    if not trial.cases:
        text = (trial.folder / "case.toml").read_text(encoding="utf-8")
        summary = "The case (the checks of this claim build theirs in Python)"
        return f"<details><summary>{summary}</summary><pre>{_text(text)}</pre></details>"
    (changes, text), *others = trial.cases.items()
    parts = [f"<details><summary>The resolved case ({len(trial.cases)} in all)</summary>"]
    if changes:
        parts.append(f"<p>With {_text(', '.join(changes))}:</p>")
    parts.append(f"<pre>{_text(text)}</pre>")
    if others:
        lines = "\n".join(
            " ".join(f"'{c}'" if " " in c else c for c in changed) or "(unchanged)" for changed, _ in others
        )
        parts.append(
            f"<p>The others are the claim’s case.toml with these changes, one case a line:</p><pre>{_text(lines)}</pre>"
        )
    return "".join(parts) + "</details>"


def _table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]], *, raw: bool = False, name: str = "") -> str:
    heading = f"<h2>{_text(title)}</h2>" if title else ""
    top = "".join(f"<th>{_text(cell)}</th>" for cell in head)
    top = f"<thead><tr>{top}</tr></thead>" if any(head) else ""
    body = "".join(f"<tr>{''.join(f'<td>{c if raw else _text(c)}</td>' for c in row)}</tr>" for row in rows)
    return f'<section>{heading}<div class="scroll"><table class="{name}">{top}<tbody>{body}</tbody></table></div></section>'


def _mark(good: bool, word: str) -> str:
    return f'<span class="{"good" if good else "bad"}">{"✓" if good else "✗"} {word}</span>'


def _linked(source: str) -> str:
    return _ARXIV.sub(r'<a href="https://arxiv.org/abs/\1">arXiv:\1</a>', _text(source))


def _number(value: float) -> str:
    return f"{value:.10g}".replace("-", "−")


def _size(error: float) -> str:
    return f"{error:.1e}".replace("-", "−") if error else "0"


def _seconds(seconds: float) -> str:
    return f"{seconds:.2g}" if seconds >= 0.01 else "0"


def _duration(seconds: float) -> str:
    return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.1f} min"


def _anchor(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "-", name)


def _text(text: str) -> str:
    return html.escape(text)
