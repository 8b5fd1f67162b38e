"""Docstrings as reStructuredText, and warnings, which fail the build, of public names that are on no page."""

import importlib
import inspect
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

_LOG = logging.getLogger(__name__)

_PUBLIC = (
    "warpbots",
    "warpbots.actuators",
    "warpbots.controllers",
    "warpbots.materials",
    "warpbots.meshing",
    "warpbots.observers",
    "warpbots.optimize.methods",
    "warpbots.morphology",
    "warpbots.optimize",
    "warpbots.robots",
    "warpbots.shapes",
    "warpbots.solvers",
    "warpbots.solvers.articulated",
    "warpbots.solvers.mass_spring",
    "warpbots.solvers.mpm",
    "warpbots.solvers.projective",
    "warpbots.usd",
    "warpbots.view",
)
"""Modules of which every name in `__all__` has to be on a page."""


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect them."""
    app.connect("autodoc-process-docstring", _escape, priority=1)
    app.connect("env-check-consistency", _check)
    app.connect("missing-reference", _refuse)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _escape(app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Bars, stars and underscores of formulas stay what they are, except between backquotes."""
    for i, line in enumerate(lines):
        parts = re.split(r"(``.*?``|`[^`]*`)", line)
        parts[::2] = (re.sub(r"(\||\*|(?<=\w)_(?=\W|$))", r"\\\1", part) for part in parts[::2])
        lines[i] = "".join(parts)


def _check(app: Sphinx, env: BuildEnvironment) -> None:
    """Warn of every public name without a docstring, or on no page."""
    shown = env.domains["py"].objects
    documented = {id(found) for name in shown if (found := _object(name)) is not None}
    for module_name in _PUBLIC:
        module = importlib.import_module(module_name)
        for name in module.__all__:
            value = getattr(module, name)
            if id(value) not in documented and f"{module_name}.{name}" not in shown:
                _LOG.warning("%s.%s is public, and on no page of the API", module_name, name)
            elif (inspect.isclass(value) or inspect.isroutine(value)) and not value.__doc__:
                _LOG.warning("%s.%s is public, and has no docstring", module_name, name)
            elif inspect.isclass(value):
                for member in _undocumented(value):
                    _LOG.warning("%s.%s.%s is public, and has no docstring", module_name, name, member)


def _refuse(app: Sphinx, env: BuildEnvironment, node: Any, text: Any) -> None:
    """Warn of a role on a page whose full name leads nowhere; docstrings and signatures name private things, too."""
    page = not node["refdoc"].startswith("docs/api/")
    if page and node.get("refdomain") == "py" and node["reftarget"].startswith("warpbots."):
        _LOG.warning("%s is on no page of the API", node["reftarget"], location=node)


def _undocumented(cls: type) -> Iterator[str]:
    """Public methods and properties of a class without a docstring."""
    for name, value in vars(cls).items():
        kinds = inspect.isroutine(value) or isinstance(value, property | classmethod | staticmethod)
        if kinds and not name.startswith("_") and not inspect.getdoc(value):
            yield name


def _object(name: str) -> Any:
    """What a full name refers to; None if it is not there."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:count]))
        except ImportError:
            continue
        for part in parts[count:]:
            if found is None:
                break
            found = getattr(found, part, None) if isinstance(found, ModuleType) else vars(found).get(part)
        return found
    return None
