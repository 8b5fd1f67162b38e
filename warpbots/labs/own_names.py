"""Names of the lab that a check reads, so that it judges by them whatever a student has bound to these names."""

import ast
import builtins
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from warpbots.labs.source import Lab, role, unmarked

__all__ = ["bound_by", "definitions", "keep", "take_back", "values"]

_kept: dict[str, Any] = {}
"""In the kernel of a notebook that is graded: the values of the lab by name."""


def definitions(lab: Lab, question: str) -> str:
    """Python code that defines anew what a check reads: built-in functions, imports, and functions of the lab.

    Functions with decorators are left out, because Warp compiles a kernel that is defined anew once more.
    """
    own, names = _own(lab, question), _read(lab, question)
    bound = {name for statement in own for name in _bound(statement)}
    lines = [
        ast.unparse(statement)
        for statement in own
        if _is_definition(statement) and not names.isdisjoint(_bound(statement))
    ]
    built_in = sorted(names.intersection(vars(builtins)) - bound)
    return "\n".join([f"from builtins import {', '.join(built_in)}"] * bool(built_in) + lines)


def values(lab: Lab, question: str) -> set[str]:
    """Names that a check reads and that the lab has bound to something that `definitions` leaves out."""
    bound = {name for statement in _own(lab, question) if not _is_definition(statement) for name in _bound(statement)}
    return bound & _read(lab, question)


def bound_by(cell: Any) -> set[str]:
    """Names that a cell of the lab binds."""
    return _bound(ast.parse(unmarked(cell.source)))


def keep(names: Iterable[str]) -> None:
    """Keep the values that the main module has now; names that it does not have are left out."""
    own = vars(sys.modules["__main__"])
    _kept.update({name: own[name] for name in names if name in own})


def take_back(names: Iterable[str]) -> None:
    """Give the main module the values that were kept."""
    vars(sys.modules["__main__"]).update({name: _kept[name] for name in names if name in _kept})


def _own(lab: Lab, question: str) -> list[ast.stmt]:
    """Statements of the lab above a check, without answers."""
    statements: list[ast.stmt] = []
    for cell in lab.cells:
        kind_name = role(cell)
        if kind_name == ("check", question):
            break
        if cell.cell_type == "code" and (kind_name is None or kind_name[0] == "check"):
            statements += ast.parse(unmarked(cell.source)).body
    return statements


def _read(lab: Lab, question: str) -> set[str]:
    """Names that a check reads, itself and in functions of the lab, without names of answers."""
    cells = {role(cell): ast.parse(unmarked(cell.source)) for cell in lab.cells if cell.cell_type == "code"}
    answered = {name for kind, tree in cells.items() if kind and kind[0] == "answer" for name in _bound(tree)}
    names, waiting = set(), _loaded(cells["check", question])
    own = _own(lab, question)
    while waiting:
        names |= waiting
        waiting = {
            name
            for statement in own
            if not names.isdisjoint(_bound(statement))
            for function in _functions(statement)
            for name in _loaded(function)
        } - names
    return names - answered - {"student"}


def _is_definition(statement: ast.stmt) -> bool:
    match statement:
        case ast.Import() | ast.ImportFrom():
            return True
        case ast.FunctionDef() | ast.ClassDef():
            return not statement.decorator_list
    return False


def _functions(statement: ast.stmt) -> Iterator[ast.AST]:
    """The functions within a statement, whose bodies run later."""
    return (node for node in ast.walk(statement) if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Lambda))


def _loaded(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def _bound(tree: ast.AST) -> set[str]:
    """Names that statements bind outside of functions."""
    match tree:
        case ast.Import() | ast.ImportFrom():
            return {alias.asname or alias.name.partition(".")[0] for alias in tree.names}
        case ast.FunctionDef() | ast.ClassDef():
            return {tree.name}
        case ast.Lambda():
            return set()
        case ast.Name(ctx=ast.Store()):
            return {tree.id}
    return {name for child in ast.iter_child_nodes(tree) for name in _bound(child)}
