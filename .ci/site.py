"""Check the built documentation; exit code 1 if a link or a picture is wrong.

    python .ci/site.py doc/_build/html

Every link within the site leads to a file that exists and to an anchor in it, every
picture has an alternative text, nothing is loaded from another server, and the pages
exist to which the HTML of the estimators links.
"""

import os
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import skbayesnn


class Page(HTMLParser):
    """Anchors, links, loaded files and pictures without a text, of one page."""

    def __init__(self, file):
        super().__init__()
        self.file = file
        self.anchors, self.links, self.loaded, self.silent = set(), [], [], []
        self.n_pictures = 0
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.anchors.update(attributes[k] for k in ("id", "name") if attributes.get(k))
        if tag == "a" and "href" in attributes:
            self.links.append(attributes["href"])
        if tag in ("img", "script") and "src" in attributes:
            self.loaded.append(attributes["src"])
        if tag == "link" and attributes.get("rel") in ("stylesheet", "icon", "preload"):
            self.loaded.append(attributes["href"])
        if tag == "img":
            self.n_pictures += 1
            # the logo stands beside the name that it would repeat
            is_logo = "logo__image" in (attributes.get("class") or "")
            if not (attributes.get("alt") or "").strip() and not is_logo:
                self.silent.append(attributes.get("src"))


def faults(page, pages, root):
    """Yield what is wrong with a page."""
    for address in page.links + page.loaded:
        parts = urlsplit(address)
        if parts.scheme or parts.netloc:
            if address in page.loaded and parts.scheme != "data":
                yield f"loads {address}"
            continue
        target = page.file
        if parts.path:
            target = (page.file.parent / unquote(parts.path)).resolve()
        if not target.is_relative_to(root) or not target.exists():
            yield f"{address}: no such file"
        elif parts.fragment and target in pages:
            anchor = unquote(parts.fragment)
            if anchor not in pages[target].anchors:
                yield f"{address}: no such anchor"
    for picture in page.silent:
        yield f"{picture}: a picture without an alternative text"


def missing_estimators(root):
    """Yield the links of estimators whose pages are not there."""
    os.environ["SKBAYESNN_DOC_URL"] = root.as_uri()
    for name in skbayesnn.__all__:
        public = getattr(skbayesnn, name)
        if hasattr(public, "_get_doc_link"):
            link = public()._get_doc_link()
            if not Path(unquote(urlsplit(link).path)).exists():
                yield f"{name}: its HTML links to {link}, which does not exist"


def main(root):
    root = Path(root).resolve()
    files = (f for f in root.rglob("*.html") if "_static" not in f.parts)
    pages = {file: Page(file) for file in files}
    if not pages:
        raise SystemExit(f"no pages in {root}")
    found = [
        f"{file.relative_to(root)}: {fault}"
        for file, page in sorted(pages.items())
        for fault in faults(page, pages, root)
    ]
    found += missing_estimators(root)
    print("\n".join(found))
    n_links = sum(len(page.links) for page in pages.values())
    n_pictures = sum(page.n_pictures for page in pages.values())
    print(f"{len(pages)} pages, {n_links} links, {n_pictures} pictures")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
