"""Names of the lab that a check reads, so that it judges by them whatever a student has bound to these names.

Cells that a grader runs contain the code: `keeping` keeps values where the lab binds them, `taking_back` gives a check
its names back.
"""

import ast
import builtins
import symtable
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from warpbots.labs.source import Lab, role, unmarked

__all__ = ["definitions", "keep", "keeping", "read_by_checks", "take_back", "taking_back", "values"]

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
    """Names that a check reads and that the lab has bound to something that `definitions` leaves out.

    What checks bind themselves is no part of them.
    """
    own = (statement for statement in _own(lab, question, checks=False) if not _is_definition(statement))
    return {name for statement in own for name in _bound(statement)} & _read(lab, question)


def read_by_checks(lab: Lab) -> set[str]:
    """The `values` of all checks."""
    return {name for question in lab.questions if not question.open for name in values(lab, question.name)}


def taking_back(lab: Lab, question: str) -> str:
    """Python code in front of a check: `definitions`, and `values` as they were kept."""
    names = sorted(values(lab, question))
    back = f"from warpbots.labs.own_names import take_back as _take_back\n_take_back({names}, globals())"
    return "\n".join(filter(None, [definitions(lab, question), back * bool(names)]))


def keeping(cell: Any, names: set[str]) -> tuple[int, str] | None:
    """Python code that keeps those of the names that a cell of the lab binds; None if there are none.

    Returns:
        The number of lines of the cell after which the code stands, and the code. It is not always the end: the last
        expression of a cell is displayed.
    """
    if cell.cell_type != "code" or role(cell) is not None:
        return None
    binding = [statement for statement in ast.parse(cell.source).body if names & _bound(statement)]
    if not binding:
        return None
    kept = sorted(names & set.union(*map(_bound, binding)))
    return binding[-1].end_lineno or 0, f"from warpbots.labs.own_names import keep as _keep\n_keep({kept})"


def keep(names: Iterable[str]) -> None:
    """Keep the values that the main module has now; names that it does not have are left out."""
    own = vars(sys.modules["__main__"])
    _kept.update({name: own[name] for name in names if name in own})


def take_back(names: Iterable[str], namespace: dict[str, Any]) -> None:
    """Give the main module, and a namespace that may be a copy of it, the values that were kept.

    Otter runs tests in a copy.
    """
    kept = {name: _kept[name] for name in names if name in _kept}
    vars(sys.modules["__main__"]).update(kept)
    namespace.update(kept)


def _own(lab: Lab, question: str, checks: bool = True) -> list[ast.stmt]:
    """Statements of the lab above a check, with those of other checks or without, and without answers."""
    statements: list[ast.stmt] = []
    for cell in lab.cells:
        kind_name = role(cell)
        if kind_name == ("check", question):
            break
        if cell.cell_type == "code" and (kind_name is None or (checks and kind_name[0] == "check")):
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
    """Global names that are read, also by functions when they are called; without their parameters and variables."""
    top, *inner = _tables(tree)
    return {symbol.get_name() for symbol in top.get_symbols() if symbol.is_referenced()} | {
        symbol.get_name() for table in inner for symbol in table.get_symbols() if symbol.is_global()
    }


def _bound(tree: ast.AST) -> set[str]:
    """Names that statements bind outside of functions and comprehensions."""
    return {
        symbol.get_name() for symbol in _tables(tree)[0].get_symbols() if symbol.is_assigned() or symbol.is_imported()
    }


def _tables(tree: ast.AST) -> list[symtable.SymbolTable]:
    """The table of the symbols of a tree, and those of all scopes within it."""
    tables = [symtable.symtable(ast.unparse(tree), "lab", "exec")]
    for table in tables:
        tables += table.get_children()
    return tables
