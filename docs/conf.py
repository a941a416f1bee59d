"""The documentation's site."""

import re
from pathlib import Path

from sphinx.application import Sphinx

# Sphinx and MyST are released several times a year and settled. MkDocs has had no release since 2024, and its successor
# Zensical, at 0.1, still changes the strict checks that this build is for.
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
project = html_title = "pytest-device"
html_theme = "furo"
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_class_signature = "separated"
python_use_unqualified_type_names = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
html_copy_source = html_show_copyright = False
myst_heading_anchors = 3
nitpicky = True
nitpick_ignore_regex = [
    ("py:.*", ".*")
]  # the types of signatures: most belong to packages without an inventory here
smartquotes_action = "qe"  # no dashes: an option's `--` in plain text would become one


def setup(app: Sphinx) -> None:
    app.connect("source-read", unlink_files)


def unlink_files(app: Sphinx, page: str, source: list[str]) -> None:
    """Keep only the text of links that leave this directory: the site has no page for them."""
    directory = (Path(app.srcdir) / page).parent

    def text_or_link(link: re.Match[str]) -> str:
        return (
            link[0]
            if (directory / link[2]).resolve().is_relative_to(app.srcdir)
            else link[1]
        )

    source[0] = re.sub(r"\[([^\]]+)\]\((\.\./[^)#]+)[^)]*\)", text_or_link, source[0])
