"""Borders and habits that eyes miss: documentation of public names, kernel signatures, and what no file may contain."""

import ast
import importlib
import inspect
import pkgutil
import re
import tomllib
from pathlib import Path

import pytest

import warpbots

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted((ROOT / "warpbots").rglob("*.py"))


def modules():
    for info in pkgutil.walk_packages(warpbots.__path__, "warpbots."):
        if not info.name.endswith("__main__"):
            yield importlib.import_module(info.name)


def test_public_names_exist_and_are_documented():
    missing = []
    for module in modules():
        if not module.__doc__:
            missing.append(module.__name__)
        for name in getattr(module, "__all__", []):
            thing = getattr(module, name)
            if inspect.isclass(thing) or inspect.isfunction(thing):
                if not thing.__doc__ or thing.__doc__.startswith(f"{name}("):
                    missing.append(f"{module.__name__}.{name}")
    assert not missing, missing


def test_every_module_says_what_is_public():
    silent = [m.__name__ for m in modules() if not hasattr(m, "__all__")]
    assert not silent, silent


def test_dataclass_fields_are_documented():
    """Every field of a public dataclass stands under Attributes in its docstring or that of the class it extends."""
    missing = []
    for module in modules():
        for name in getattr(module, "__all__", []):
            thing = getattr(module, name)
            fields = getattr(thing, "__dataclass_fields__", {}) if inspect.isclass(thing) else {}
            doc = "\n".join(c.__doc__ or "" for c in thing.__mro__) if inspect.isclass(thing) else ""
            missing += [
                f"{name}.{f}" for f in fields if not f.startswith("_") and not re.search(rf"^\s+{f}: ", doc, re.M)
            ]
    assert not missing, missing


def test_arrays_of_states_and_models_have_unit_and_shape():
    from warpbots.solvers.mpm import MPMModel, MPMState

    for cls in (MPMModel, MPMState):
        lines = re.findall(
            r"^\s{8}(\w+): (.*?)(?=^\s{8}\w+: |\Z)", inspect.getdoc(cls).replace("\n    ", "\n        "), re.M | re.S
        )
        for name, text in lines:
            if "wp.array" in str(cls.__annotations__.get(name)):
                assert re.search(r"\[.*\]", text) and "shape (" in text, f"{cls.__name__}.{name}: {text}"


def kernels():
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and any("wp.kernel" in ast.unparse(d) for d in node.decorator_list):
                yield path, node


def test_kernels_write_only_what_they_name_as_output():
    bad = []
    for path, node in kernels():
        arguments = [a.arg for a in node.args.args]
        for inner in ast.walk(node):
            targets = []
            if isinstance(inner, ast.Assign):
                targets = inner.targets
            elif isinstance(inner, ast.AugAssign):
                targets = [inner.target]
            elif isinstance(inner, ast.Call) and ast.unparse(inner.func).startswith("wp.atomic_"):
                targets = [inner.args[0]]
            for target in targets:
                root = target
                while isinstance(root, ast.Subscript | ast.Attribute):
                    root = root.value
                is_array = isinstance(target, ast.Subscript | ast.Attribute) or isinstance(inner, ast.Call)
                if is_array and isinstance(root, ast.Name) and root.id in arguments and not root.id.endswith("_out"):
                    bad.append(f"{path.name}:{inner.lineno} writes {root.id}")
    assert not bad, bad


def test_kernels_and_device_functions_are_documented_and_named_once():
    bodies: dict[str, str] = {}
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.FunctionDef):
                continue
            decorators = " ".join(ast.unparse(d) for d in node.decorator_list)
            if "wp.kernel" in decorators or "wp.func" in decorators and "func_grad" not in decorators:
                assert ast.get_docstring(node), f"{path.name}: {node.name} has no docstring"
            if "wp.func" in decorators and len(node.body) > 3:
                body = "\n".join(ast.unparse(s) for s in node.body[1:])
                assert body not in bodies, f"{node.name} in {path.name} repeats {bodies[body]}"
                bodies[body] = f"{node.name} in {path.name}"


@pytest.mark.parametrize("pattern", [r"\bnan_to_num\b", r"except:\s*$", r"^\s*print\(", r"/work/|/root/"])
def test_no_file_contains(pattern):
    allowed = {"print": "cli.py"}
    for path in SOURCES:
        if "print" in pattern and path.name == allowed["print"]:
            continue
        found = re.search(pattern, path.read_text(), re.M)
        assert not found, f"{path.relative_to(ROOT)} contains {found.group(0)!r}"


def test_environment_for_conda_is_that_of_pip():
    """environment.yml installs this project with the extras that pyproject.toml defines, and the same Pythons."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    text = (ROOT / "environment.yml").read_text()
    assert f"python{project['requires-python']}" in text
    extras = re.search(r"--editable \.\[(.*)\]", text).group(1).split(",")
    assert set(extras) <= set(project["optional-dependencies"])
    assert "--constraint constraints.txt" in text


def test_constraints_pin_every_dependency():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pinned = {
        line.split("==")[0].lower().replace("_", "-") for line in (ROOT / "constraints.txt").read_text().splitlines()
    }
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["notebook"], *extras["test"]]
    names = {re.match(r"[A-Za-z0-9_-]+", w).group(0).lower() for w in wanted}
    assert names <= pinned, names - pinned
