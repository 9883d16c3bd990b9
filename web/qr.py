"""A text as a QR code, drawn into the page. Loaded when one is shown: the library is needed for nothing else."""

import segno
from markupsafe import Markup

QUIET = 2  # blank modules around it, on a white ground in both themes


def drawn(text: str) -> Markup:
    """An SVG without size of its own and without words: whoever shows it gives it a name."""
    code = segno.make(text, error="m", micro=False)
    svg = code.svg_inline(omitsize=True, border=QUIET, dark="#000", light="#fff", svgclass=None, lineclass=None)
    return Markup(svg)  # noqa: S704 - nothing of the text stands in it: segno draws it from numbers
