"""Does every link of the built site lead somewhere, without the network?

    python tools/check_site.py docs/_build/html

Every href and src that stays on the site must name a file that is there, and an anchor that its
page has. No page may load a script, a style or a picture from elsewhere: the site is read offline
too, and its search must find its words in a script, because a browser fetches nothing for a page
that is a file.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADS = {"script": "src", "img": "src", "iframe": "src", "link": "href"}
#: Relations of <link> that a browser does not load.
POINTERS = {"canonical", "next", "prev", "search", "index", "author", "license"}


class Page(HTMLParser):
    """The anchors of a page, and what it refers to."""

    def __init__(self, text: str):
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def has(self, anchor: str) -> bool:
        return not anchor or anchor in self.anchors

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        elif tag in LOADS and LOADS[tag] in found and found.get("rel") not in POINTERS:
            self.loads.append(found[LOADS[tag]])


def problems(root: Path) -> list[str]:
    """A line for each link that leads nowhere and each load from elsewhere."""
    files = (path for path in root.rglob("*.html") if "_static" not in path.parts)
    pages = {path: Page(path.read_text("utf-8")) for path in files}
    found = []
    for path, page in pages.items():
        here = path.relative_to(root)
        for link in page.loads + page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in page.loads and parts.scheme != "data":
                    found.append(f"{here} loads {link} from elsewhere")
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                found.append(f"{here}: {link} leads nowhere")
            elif target in pages and not pages[target].has(unquote(parts.fragment)):
                found.append(f"{here}: {link} has no such anchor")
    search = pages.get(root / "search.html")
    if not search or "searchindex.js" not in {urlsplit(load).path for load in search.loads}:
        found.append("search.html does not load searchindex.js: search does not work offline")
    return sorted(set(found))


def main() -> None:
    root = Path(sys.argv[1]).resolve()
    found = problems(root)
    print(
        "\n".join(found) or f"{len(list(root.rglob('*.html')))} pages, every link leads somewhere"
    )
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
