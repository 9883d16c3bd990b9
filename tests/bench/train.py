"""`make train`: fits the shipped model and what tells refusals from answers, and renews `docs/selection.md`."""

from pathlib import Path

from cortex.base import memory
from cortex.commands import training
from cortex.commands.reliability import rows
from cortex.commands.train import fitted
from cortex.commands.training import TrainingResult
from cortex.selection.model import lacks_tool
from cortex.selection.model.weights import SHIPPED
from tests.bench import answers
from tests.bench.__main__ import update
from tests.bench.recipes import table
from tests.bench.reliability_plot import svg

DOCS = Path(__file__).parents[2] / "docs"
PAGE, PLOT = DOCS / "selection.md", DOCS / "selection-reliability.svg"
BEGIN, END = "<!-- train:begin -->", "<!-- train:end -->"


def main() -> None:
    """Fit, print, write the weights, the page's tables and the plot; half a minute."""
    found = fitted(SHIPPED)
    memory.replace(lacks_tool.FILE, answers.fitted())
    update(PAGE, markdown(found), BEGIN, END)
    PLOT.write_text(plot(found), encoding="utf-8")


def markdown(found: TrainingResult) -> str:
    """The report as Markdown."""
    tables = (training.needing(found), training.needless(found), rows(found.curves))
    errors = "\n".join(f"- {line}" for line in training.errors(found))
    return "\n\n".join((training.size(found), *map(table, tables), errors))


def plot(found: TrainingResult) -> str:
    """The reliability plot, as SVG."""
    return svg(found.curves, f"{found.fitted.weights.made}; each judged when it is left out; bars: 95 % intervals")


if __name__ == "__main__":
    main()
