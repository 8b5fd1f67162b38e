"""The site: ``python run.py docs``.

Its root is that of the repository, so that pages, tutorials, benchmarks and conventions are shown from where they are,
and a link between two of them holds in the repository and on the site alike. Why this generator:
``docs/design/site.md``.
"""

import importlib.util
import os
import sys
import tomllib
from pathlib import Path
from urllib.parse import urlsplit

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extension"))
os.environ.setdefault("OMP_NUM_THREADS", "1")

import warpbots  # noqa: E402

project = "warpbots"
author = "warpbots contributors"
copyright = "warpbots contributors, Apache-2.0"
version = release = warpbots.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "documented_names",
    "gallery",
    "mathml",
    "tables",
    "tutorials",
    "usd_attributes",
]
root_doc = "docs/index"
include_patterns = [
    "docs/*.md",
    "docs/api/*.md",
    "docs/design/*.md",
    "docs/examples/*.py",
    "docs/gallery/*.md",
    "docs/gallery/*.py",
    "docs/solvers/*.md",
    "docs/tasks/*.md",
    "tutorials/*.ipynb",
    "benchmarks/**.md",
    "usd_scenes/README.md",
    "warpbots/CONVENTIONS.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
]
exclude_patterns = ["**/.*", ".*", "build", "dist", "output*", "tests"]

default_role = "py:obj"  # docstrings name what they refer to in backquotes, arguments included
suppress_warnings = ["ref.python"]  # an argument that is called as attributes of several classes are
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 4
nb_execution_mode = "off"  # the tests execute tutorials; the site shows what they have stored
nb_render_error_lexer = "text"  # stored errors are sentences of open exercises, not tracebacks
autodoc_mock_imports = [
    name
    for name in ("gymnasium", "rsl_rl", "stable_baselines3", "tensordict", "torchrl")
    if importlib.util.find_spec(name) is None
]  # libraries of adapters, whose classes are on a page all the same
autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
napoleon_use_ivar = True
napoleon_use_rtype = False
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"
maximum_signature_line_length = 80

html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = "warpbots"
html_favicon = "_static/logo.svg"
html_static_path = ["_static"]
html_css_files = ["site.css", "layout.css"]
html_search_scorer = str(HERE / "search_order.js")
templates_path = ["_templates"]
html_show_sourcelink = False
html_sidebars = {"**": ["guide.html"], "docs/index": []}
html_context = {
    "moved": {  # page -> its place, relative to the page
        "index": "docs/index.html",
        "docs/gallery/bouncing_cube": "heap_of_cubes.html",
        "docs/gallery/design_kept_in_usd": "beam_of_designed_stiffness.html",
        "docs/gallery/flag_in_the_wind": "cloth_over_a_moving_ball.html",
        "docs/gallery/yielding_truss": "index.html",
    },
    "default_mode": "auto",
    "first_row": [
        ("Install", "docs/install"),
        ("Learn", "docs/learn"),
        ("Gallery", "docs/gallery/index"),
        ("Solvers", "docs/solvers/index"),
        ("Tasks", "docs/tasks/index"),
        ("USD", "docs/usd"),
        ("API", "docs/api/index"),
    ],
}
html_additional_pages = dict.fromkeys(html_context["moved"], "redirect.html")
WITH_SECTIONS = (
    "docs/install", "docs/[!i]*", "docs/[ads][peo]*/*", "benchmarks/**", "usd_scenes/*", "warpbots/*", "C*",
)  # fmt: skip
"""Pages with a list of their sections on the right."""

REPOSITORY = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["metadata"][
    "hooks"
]["custom"]["repository"]
PLACED = not urlsplit(REPOSITORY).hostname.endswith(".example")
"""Whether the repository has an address: the reserved ending stands in for one, and a link to it leads nowhere."""
html_theme_options = {
    "logo": {"image_light": "_static/logo.svg", "image_dark": "_static/logo.svg", "text": "warpbots"},
    "icon_links": [{"name": "Repository", "url": REPOSITORY, "icon": "fa-solid fa-code-branch"}] if PLACED else [],
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "navbar_align": "left",
    "navbar_start": ["navbar-logo", "version"],
    "navbar_center": ["first-row"],
    "navbar_persistent": ["search-button"],
    # Long lines of code need the width of the right column: sections of tutorials and tasks are in the left one.
    "secondary_sidebar_items": dict.fromkeys(WITH_SECTIONS, ("page-toc",)),
    "footer_start": ["copyright"],
    "footer_end": [],
}
