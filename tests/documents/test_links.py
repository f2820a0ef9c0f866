"""Links of the documents lead to files and headings that exist."""

import pytest
from documents import PAGES, ROOT, headings, links, name

# what the site makes when it is built; `doc/check_site.py` looks at it
GENERATED = ROOT / "doc" / "generated"


@pytest.mark.parametrize("page", [pytest.param(p, id=name(p)) for p in PAGES])
def test_links(page):
    wrong = []
    for link in links(page):
        address, _, anchor = link.partition("#")
        if address.startswith(("http:", "https:", "mailto:")):
            continue
        target = (page.parent / address).resolve() if address else page
        if target.is_relative_to(GENERATED):
            continue
        exists = target.exists()
        if not exists or (anchor and anchor not in headings(target)):
            wrong.append(link)
    assert not wrong


def test_readme_is_one_screen():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120
