"""Rows as CSV that spreadsheets open as what it is: text from strangers never begins a formula there."""

import csv
import io
import re
from collections.abc import Sequence

FORMULA = re.compile(r"^[=+\-@\t\r]")
NUMBER = re.compile(r"^[+-]?\d[\d.,]*(?:[eE][+-]?\d+)?%?$")


def csv_text(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A header and the rows; a cell that a spreadsheet would compute begins with an apostrophe, numbers stay."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow([_plain(name) for name in columns])
    writer.writerows([[_plain(cell) for cell in row] for row in rows])
    return out.getvalue()


def _plain(cell: str) -> str:
    return f"'{cell}" if FORMULA.match(cell) and not NUMBER.match(cell) else cell
