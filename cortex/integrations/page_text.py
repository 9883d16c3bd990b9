"""The readable text of a web page as Markdown. trafilatura is heavy: load this module on first use, by `scan`."""

import trafilatura

HTML_CHARACTERS = 3_000_000


def readable(html: str, url: str) -> tuple[str, str]:
    """Title and main text of a page, menus and adverts left out; empty texts when there is none."""
    tree = trafilatura.load_html(html[:HTML_CHARACTERS])
    if tree is None:
        return "", ""
    title = " ".join((tree.findtext(".//title") or "").split())
    text = trafilatura.extract(tree, url=url, output_format="markdown", include_links=True, include_comments=False)
    return title, text or ""
