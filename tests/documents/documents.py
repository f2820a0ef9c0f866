"""The pages of the documentation, as text."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "doc").rglob("*.md"))]
PAGES = [page for page in PAGES if not {"_build", "generated"} & set(page.parts)]

FENCE = re.compile(r"^(`{3,})([^`\n]*)\n(.*?)^\1[ \t]*$", re.MULTILINE | re.DOTALL)


def name(page):
    return page.relative_to(ROOT).as_posix()


def blocks(page, language):
    """Code blocks of a language, each with the line on which its code starts."""
    text = page.read_text(encoding="utf-8")
    for match in FENCE.finditer(text):
        if match[2].strip() == language:
            yield text.count("\n", 0, match.start(3)) + 1, match[3]


def headings(page):
    """Anchors of the headings, as GitHub and MyST make them."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    for match in re.finditer(r"^#+ (.*)$", text, re.MULTILINE):
        yield re.sub(r"[^\w\- ]", "", match[1].lower()).strip().replace(" ", "-")


def links(page):
    """Addresses of links and pictures."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    yield from re.findall(r"\]\(([^)\s]+)\)", text)
