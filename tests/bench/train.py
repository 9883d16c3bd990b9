"""`make train`: fits the shipped models, the second by the tests' sentence model, and renews `docs/selection.md`."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from cortex.bench import training
from cortex.bench.reliability import rows
from cortex.bench.training import TrainingResult
from cortex.commands.bench import fitted_twice
from cortex.selection.weights import SHIPPED
from tests.bench.__main__ import update
from tests.bench.recipes import table
from tests.bench.reliability_plot import svg
from tests.real_encoder import real_folder

DOCS = Path(__file__).parents[2] / "docs"
PAGE, PLOT = DOCS / "selection.md", DOCS / "selection-reliability.svg"
BEGIN, END = "<!-- train:begin -->", "<!-- train:end -->"


def main() -> None:
    """Fit, print, write the weights, the page's tables and the plot; minutes of two cores."""
    with TemporaryDirectory() as place:
        found, second = fitted_twice(SHIPPED, real_folder(Path(place) / "model"))
    update(PAGE, markdown(found, second), BEGIN, END)
    PLOT.write_text(plot(found), encoding="utf-8")


def markdown(found: TrainingResult, second: TrainingResult) -> str:
    """The report as Markdown."""
    needing = (*training.needing(found), *_marked(training.needing(second)[-1:]))
    needless = (*training.needless(found), *_marked(training.needless(second)[1:]))
    errors = "\n".join(f"- {line}" for line in training.errors(found))
    return "\n\n".join(
        (training.size(found), *(table(each) for each in (needing, needless, rows(found.curves))), errors)
    )


def _marked(rows: Iterable[Sequence[str]]) -> list[list[str]]:
    return [[f"{name}, with the sentence model", *figures] for name, *figures in rows]


def plot(found: TrainingResult) -> str:
    """The reliability plot, as SVG."""
    return svg(found.curves, f"{found.fitted.weights.made}; each judged when it is left out; bars: 95 % intervals")


if __name__ == "__main__":
    main()
