"""The documentation's site."""

import os
import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any, Final

from docutils import nodes
from pygments.lexers import find_lexer_class_for_filename
from sphinx.application import Sphinx
from sphinx.util import logging

# Sphinx and MyST are released several times a year and settled. MkDocs has had no release since 2024, and its successor
# Zensical, at 0.1, still changes the strict checks that this build is for.
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
project = html_title = "pytest-device"
html_theme = "furo"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True  # as written: `time.monotonic`, not the function
autodoc_member_order = "bysource"
python_use_unqualified_type_names = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
html_copy_source = html_show_copyright = False
myst_heading_anchors = 3
myst_enable_extensions = [
    "html_image"
]  # a width for a picture, also on the repository's pages
nitpicky = True
nitpick_ignore_regex = [
    ("py:.*", ".*")
]  # the types of signatures: most belong to packages without an inventory here
smartquotes_action = "qe"  # no dashes: an option's `--` in plain text would become one

_ROOT: Final = Path(__file__).resolve().parents[1]
_LINK: Final = re.compile(r"\[([^\]]+)\]\((\.\./[^)#]+)[^)]*\)")
_NOT_SHOWN: Final = {"__pycache__", "node_modules"}
_log = logging.getLogger(__name__)


def setup(app: Sphinx) -> None:
    pages = SourcePages(app)
    app.connect("source-read", pages.link)
    app.connect("html-collect-pages", pages.write)
    app.connect("autodoc-process-signature", _without_empty_signature)
    app.connect("doctree-read", _with_dashes)


class SourcePages:
    """Pages with the files that the documentation links to and that are outside its directory.

    Links to the repository's web page would need a network, and would show another version than the one documented.
    """

    def __init__(self, app: Sphinx) -> None:
        self._directory = Path(app.srcdir)
        self._linked: set[Path] = set()

    def link(self, _: Sphinx, page: str, source: list[str]) -> None:
        """Let the links of a page that leave the documentation lead to pages with the files."""
        directory = (self._directory / page).parent

        def link_to_page(link: re.Match[str]) -> str:
            path = (directory / link[2]).resolve()
            if path.is_relative_to(self._directory):
                return link[0]

            if not path.exists():
                _log.warning("%s links to %s, which does not exist", page, link[2])
                return link[1]

            self._linked.add(path)
            target = os.path.relpath(f"{_page_of(path)}.html", Path(page).parent)
            return f'<a class="reference internal" href="{target}">{link[1]}</a>'

        source[0] = _LINK.sub(link_to_page, source[0])

    def write(self, app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
        """Yield a page for each linked file or directory."""
        for path in sorted(self._linked):
            title = escape(str(path.relative_to(_ROOT)))
            files = _files_in(path) if path.is_dir() else [path]
            sections = [_section(app, file) for file in files]
            body = f"<h1>{title}</h1>\n" + "\n".join(sections)
            yield _page_of(path), {"title": title, "body": body}, "page.html"


def _without_empty_signature(
    _app: Sphinx, kind: str, _name: str, _object: object, _options: object, *shown: str
) -> tuple[str, str] | None:
    """Leave out the signature of a class that suites don't create; its page says ``Name()``."""
    return ("", "") if kind in {"class", "exception"} and shown[0] == "()" else None


def _with_dashes(_app: Sphinx, page: nodes.document) -> None:
    """Show dashes between arguments and their descriptions, where Sphinx has two hyphens."""
    for text in page.findall(nodes.Text):
        if text == " -- ":
            text.parent.replace(text, nodes.Text(" \N{EN DASH} "))


def _page_of(path: Path) -> str:
    return f"source/{path.relative_to(_ROOT)}"


def _files_in(directory: Path) -> list[Path]:
    return [
        path
        for path in sorted(directory.rglob("*"))
        if path.is_file()
        and not any(
            part.startswith(".") or part in _NOT_SHOWN
            for part in path.relative_to(directory).parts
        )
    ]


def _section(app: Sphinx, path: Path) -> str:
    heading = f"<h2>{escape(str(path.relative_to(_ROOT)))}</h2>"
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return f"{heading}\n<p>A binary file.</p>"

    lexer = find_lexer_class_for_filename(path.name)
    language = lexer.aliases[0] if lexer else "text"
    code = app.builder.highlighter.highlight_block(text, language, force=True)
    return f"{heading}\n{code}"
