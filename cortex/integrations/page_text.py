"""The readable text of a web page as Markdown. trafilatura is heavy: load this module on first use, by `scan`."""

import trafilatura

HTML_CHARACTERS = 3_000_000


def readable(html: str, url: str) -> tuple[str, str]:
    """Title and main text of a page, menus and adverts left out; empty texts when there is none."""
    page = trafilatura.bare_extraction(
        html[:HTML_CHARACTERS], url=url, with_metadata=True, include_links=True, include_comments=False
    )
    if page is None:
        return "", ""
    found = page if isinstance(page, dict) else page.as_dict()
    text = trafilatura.extract(
        html[:HTML_CHARACTERS], url=url, output_format="markdown", include_links=True, include_comments=False
    )
    return str(found.get("title") or ""), text or ""
