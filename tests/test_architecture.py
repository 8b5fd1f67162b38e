"""Borders and habits that eyes miss: documentation of public names, kernel signatures, and what no file may contain."""

import ast
import dataclasses
import functools
import importlib
import inspect
import pkgutil
import re
import tomllib
from pathlib import Path

import pytest

import warpbots
import warpbots.envs
from warpbots.numerics.parameters import parameters_of

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted((ROOT / "warpbots").rglob("*.py"))


NEEDS = {
    "warpbots.envs.registered": "gymnasium",
    "warpbots.envs.rsl_rl": "rsl_rl",
    "warpbots.envs.single_env": "gymnasium",
    "warpbots.envs.stable_baselines": "stable_baselines3",
    "warpbots.envs.torchrl": "torchrl",
    "warpbots.envs.vector_env": "gymnasium",
}
"""Modules around classes of optional packages, which they cannot import later."""


def installed(package):
    return package is None or importlib.util.find_spec(package) is not None


def modules():
    for info in pkgutil.walk_packages(warpbots.__path__, "warpbots."):
        if not info.name.endswith("__main__") and installed(NEEDS.get(info.name)):
            yield importlib.import_module(info.name)


def public(module):
    """Public names of a module and what they are, without those for which an optional package is missing."""
    needs = vars(warpbots.envs)["_LOADED_WHEN_USED"] if module is warpbots.envs else {}
    for name in getattr(module, "__all__", []):
        if name not in needs or installed(needs[name][1]):
            yield name, getattr(module, name)


def test_public_names_exist_and_are_documented():
    missing = []
    for module in modules():
        if not module.__doc__:
            missing.append(module.__name__)
        for name, thing in public(module):
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
        for name, thing in public(module):
            fields = getattr(thing, "__dataclass_fields__", {}) if inspect.isclass(thing) else {}
            doc = "\n".join(c.__doc__ or "" for c in thing.__mro__) if inspect.isclass(thing) else ""
            missing += [
                f"{name}.{f}" for f in fields if not f.startswith("_") and not re.search(rf"^\s+{f}: ", doc, re.M)
            ]
    assert not missing, missing


def solver_classes():
    """All models, states, readings and kinds of matter of the solvers."""
    from warpbots.solvers.matter import Matter

    for module in modules():
        for name, cls in vars(module).items():
            own = inspect.isclass(cls) and cls.__module__ == module.__name__ and name in module.__all__
            if own and module.__name__.startswith("warpbots.solvers."):
                if (name.endswith(("Model", "State")) or name == "Dynamics") and dataclasses.is_dataclass(cls):
                    yield cls
                elif issubclass(cls, Matter) or name.endswith("Readings"):
                    yield cls


def is_array(annotation):
    """Whether a field is an array, or a dictionary of arrays."""
    return bool(re.search(r"\b[aA]rray\b|\bndarray\b", str(annotation))) and not str(annotation).startswith("list")


def test_arrays_of_states_and_models_have_unit_and_shape():
    """Every array of a public model, state or matter says its shape, and its unit in brackets or that it is int or bool.

    As in "Masses [kg], shape (n,)." and "Body of each mass, shape (n,), int."
    """
    missing, seen = [], set()
    for cls in solver_classes():
        seen.add(cls.__name__)
        properties = {n: inspect.getdoc(p) or "" for n, p in vars(cls).items() if is_array(annotation_of(p))}
        fields = dict(re.findall(r"^    (\w+): (.*?)(?=^    \w+: |^\w|\Z)", inspect.getdoc(cls), re.M | re.S))
        arrays = {n: fields.get(n, "") for n, a in inspect.get_annotations(cls).items() if is_array(a)}
        arrays |= {n: fields.get(n, "") for n in parameters_of(cls)}  # a base may declare them
        for name, text in (arrays | properties).items():
            kind = re.search(r"\[[^\]]+\].*shape \(|shape \([^)]*\), (int|bool)\b", " ".join(text.split()))
            if not kind:
                missing.append(f"{cls.__module__}.{cls.__name__}.{name}: {text.strip()}")
    assert {"MPMModel", "MassSpringState", "ArticulatedModel", "SkeletalState", "Particles", "Lattice", "Mesh"} <= seen
    assert not missing, "\n".join(missing)


def annotation_of(member):
    """The return type of a property; empty for other members."""
    function = getattr(member, "fget", None) or getattr(member, "func", None)
    return getattr(function, "__annotations__", {}).get("return", "")


def steps_of_a_stiffness():
    """Rows of the way of a stiffness: files and names."""
    text = (ROOT / "docs" / "design" / "structure.md").read_text()
    table = text.partition("### Follow a stiffness")[2].partition("\n\n|")[2].partition("\n\n")[0]
    for line in table.splitlines()[2:]:
        yield tuple(re.findall(r"`([^`]+)`", cell) for cell in line.split("|")[2:4])


def test_the_way_of_a_stiffness_is_where_the_page_says():
    """Each name of a row is used or defined in a file of this row."""
    steps = list(steps_of_a_stiffness())
    assert len(steps) == 5
    for files, names in steps:
        words = set()
        for file in files:
            for node in ast.walk(ast.parse((ROOT / "warpbots" / file).read_text())):
                words |= {
                    getattr(node, key) for key in ("name", "id", "attr") if isinstance(getattr(node, key, None), str)
                }
        assert set(names) <= words, (files, set(names) - words)


def trees_with(*words):
    """Files of the package in which one of some words occurs: path and syntax tree of each."""
    for path in SOURCES:
        text = path.read_text()
        if any(word in text for word in words):
            yield path, ast.parse(text)


def functions(decorator):
    """Functions of the package under a decorator: path and syntax tree of each."""
    for path, tree in trees_with(decorator):
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and any(decorator in ast.unparse(d) for d in node.decorator_list):
                yield path, node


def test_no_quotient_of_numbers_is_rounded_to_float32():
    """Warp evaluates `1.0 / 3.0` in float32; `real(1.0) / real(3.0)` is a quotient of the type of the solver."""
    bad = [
        f"{path.name}:{node.lineno} {ast.unparse(node)}"
        for path, function in functions("wp.")
        for node in ast.walk(function)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)
        and isinstance(node.left, ast.Constant) and isinstance(node.right, ast.Constant)
    ]  # fmt: skip
    assert not bad, "\n".join(bad)


def root_of(target):
    """The name that a chain of indices and attributes starts with, and whether there is a chain."""
    chain = False
    while isinstance(target, ast.Subscript | ast.Attribute):
        target, chain = target.value, True
    return (target.id if isinstance(target, ast.Name) else None), chain


WRITES_NATIVELY = {
    "_meet": {0},
    "add_multiple": {0},
    "add_multiple_of": {0},
    "add_multiples": {0},
    "add_to": {0},
    "clear_entries": {0},
    "combine_rows": {0},
    "copy_entries": {1},
    "deposit": {0},
    "eliminate_rows": {0},
    "factorise_at": {0, 1},
    "factorise_rows": {0},
    "fetch": set(),
    "gather_lines": set(),
    "gather_rows": {0},
    "index": set(),
    "item": set(),
    "keep_and_flush": {0},
    "put": {0},
    "return_to": set(),
    "scatter_lines": {0},
    "slope_lines": set(),
    "solve_at": {2},
    "solve_rows": {3},
    "within": set(),
}
"""Functions in C++ that take arrays, by name: the arguments that they write."""

CALLED_OTHERWISE = {
    "active": "active_stress_of", "_active": "active_stress_of", "active_work_of": "work", "by_others": "by_law",
}  # fmt: skip
"""Functions that take arrays and are called by another name than that of their definition."""

WRITES = re.compile(r"wp\.(atomic_\w+|tile_store|tile_atomic_add)")
"""Functions of Warp that write their first argument."""


def arrays_of(node):
    """Arguments of a Warp function that are arrays or structs, which outlive a call: index of each by name."""
    kinds = [(i, a.arg, ast.unparse(a.annotation)) for i, a in enumerate(node.args.args) if a.annotation]
    values = {"NODE", "Twist", "T", "Numbers"}  # vectors, type variables, and the numbers of a law
    return {
        name: i for i, name, kind in kinds if ("array" in kind or re.search(r"[A-Z]\w+$", kind)) and kind not in values
    }


@functools.cache
def assignments_and_calls(node):
    """Assignments and calls within a function, each with the name of the function that is called."""
    kinds = ast.Assign | ast.AugAssign | ast.Call
    return [(n, ast.unparse(n.func) if isinstance(n, ast.Call) else "") for n in ast.walk(node) if isinstance(n, kinds)]


def writes_of(node, known):
    """Arguments that a Warp function or kernel writes: line and name of each.

    Args:
        node: Its syntax tree.
        known: Arguments that functions write, by name of the function.
    """
    arrays = arrays_of(node)
    alias = {}  # a local name for a struct within a struct: pairs = work.pairs

    def owner(target):
        name, chain = root_of(target)
        return (alias[name][0], True) if name in alias else (name, chain)

    for inner, _ in assignments_and_calls(node):
        if isinstance(inner, ast.Assign) and len(inner.targets) == 1 and isinstance(inner.targets[0], ast.Name):
            name, chain = root_of(inner.value)
            if chain and isinstance(inner.value, ast.Attribute) and name in arrays:
                alias[inner.targets[0].id] = (name, True)
    for inner, called in assignments_and_calls(node):
        written = []
        if isinstance(inner, ast.Assign | ast.AugAssign):
            targets = inner.targets if isinstance(inner, ast.Assign) else [inner.target]
            written = [t for t in targets if isinstance(t, ast.Subscript | ast.Attribute)]
        elif isinstance(inner, ast.Call):
            name = called.rsplit(".", 1)[-1]
            name = CALLED_OTHERWISE.get(name, name)
            if called.startswith("wp."):
                written = inner.args[:1] if WRITES.match(called) else []
            elif name in known:
                written = [inner.args[i] for i in known[name] if i < len(inner.args)]
            else:
                passed = [a.id for a in inner.args if isinstance(a, ast.Name) and a.id in arrays]
                assert not passed, f"{node.name} passes {passed} to {called}, which no function is called"
        for target in written:
            name, _ = owner(target)
            if name in arrays:
                yield inner.lineno, name


def test_kernels_write_only_what_they_name_as_output():
    """What a kernel writes, itself or by the functions that it calls, is an argument called ..._out.

    Functions are told apart by name alone; those of one name count as one that writes what any of them does.
    """
    device = [node for _, node in functions("wp.func")]
    with_arrays = [(node, arrays_of(node)) for node in device if arrays_of(node)]
    native = {node.name for _, node in functions("wp.func_native") if arrays_of(node)}
    assert native == WRITES_NATIVELY.keys()
    known = {node.name: set() for node in device} | WRITES_NATIVELY
    while True:
        found = {name: set(indices) for name, indices in known.items()}
        for node, arrays in with_arrays:
            found[node.name].update(arrays[name] for _, name in writes_of(node, known))
        if found == known:
            break
        known = found
    assert known["evaluate"] == {2}, "the struct that a function hands on to others is followed"
    bad = [
        f"{path.relative_to(ROOT)}:{line} writes {name}"
        for path, node in functions("wp.kernel")
        for line, name in writes_of(node, known)
        if not name.endswith("_out")
    ]
    assert not bad, bad


GROUPS = ("launch", "model", "state", "step", "work", "out")


def test_arguments_of_kernels_are_grouped():
    """More than three arguments stand under comments: what is constant, what moves, what a step computes, and outputs.

    # launch (a slice of the items), # model (constant in a step), # state, # step (its length, stage, ...), # work
    (arrays of the workspace) and # out, which comes last and has all arguments called ..._out.
    """
    bad = []
    for path, node in functions("wp.kernel"):
        where = str(path.relative_to(ROOT))
        if len(node.args.args) <= 3:
            continue
        lines = path.read_text().splitlines()
        group, order, place = None, [], {}
        for number in range(node.lineno, node.body[0].lineno):
            comment = re.match(r"\s*# (\w+)$", lines[number])
            if comment:
                group = comment.group(1)
                order.append(group)
            for argument in node.args.args:
                if argument.lineno == number + 1:
                    place[argument.arg] = group
        grouped = set(place.values()) <= set(GROUPS) and order[-1:] == ["out"] and len(order) == len(set(order))
        outputs = all((name.endswith("_out")) == (g == "out") for name, g in place.items())
        if not (grouped and outputs):
            bad.append(f"{where}:{node.lineno} {node.name}")
    assert not bad, "\n".join(bad)


def test_kernels_and_device_functions_are_documented_and_named_once():
    bodies: dict[str, str] = {}
    for path, tree in trees_with("wp.kernel", "wp.func"):
        for node in ast.walk(tree):
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
    printing = ROOT / "warpbots" / "cli", ROOT / "warpbots" / "exercises.py"
    for path in SOURCES:
        if "print" in pattern and any(place in (path, *path.parents) for place in printing):
            continue
        found = re.search(pattern, path.read_text(), re.M)
        assert not found, f"{path.relative_to(ROOT)} contains {found.group(0)!r}"


def test_warp_starts_in_one_place():
    """`numerics.warp_device` starts Warp without the message about a missing GPU, which graders take for an error."""
    start = re.compile(r"\bwp\.(get_device|init|get_cuda_devices)\(")
    assert [path.name for path in SOURCES if start.search(path.read_text())] == ["devices.py"]


def test_arrays_become_tensors_in_one_place():
    """`gradients.tensor_of` shares memory, which `wp.to_torch` may not do if the user has chosen a default device."""
    assert [path.name for path in SOURCES if "wp.to_torch(" in path.read_text()] == ["tensors.py"]


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
    wanted = [*project["dependencies"], *(w for e in extras if e not in ("benchmark", "dev") for w in extras[e])]
    names = {re.match(r"[A-Za-z0-9_-]+", w).group(0).lower() for w in wanted} - {"warpbots"}
    assert names <= pinned, names - pinned


_SNIFFS = {
    "robots/mujoco_versions.py": "MuJoCo names its fields differently from version to version",
    "scene/field_types.py": "numbers of NumPy and torch, neither of which scenes import",
    "solvers/mass_spring/spectrum.py": "tensors, of which solvers know nothing",
}
"""Files that look whether something has an attribute, and why."""


def test_nothing_looks_whether_a_model_or_a_solver_has_an_attribute():
    """Generic code uses only attributes declared in `warpbots.solvers.solver`."""
    seen = set()
    for path in [*SOURCES, *(ROOT / "benchmarks").rglob("*.py")]:
        text = path.read_text()
        if "hasattr" not in text and "__getattr__" not in text:
            continue
        tree = ast.parse(text)
        calls = (n for n in ast.walk(tree) if isinstance(n, ast.Call) and ast.unparse(n.func) == "hasattr")
        forwards = (n for n in ast.walk(tree) if isinstance(n, ast.ClassDef))
        probes = any(True for _ in calls)
        probes |= any(isinstance(m, ast.FunctionDef) and m.name == "__getattr__" for c in forwards for m in c.body)
        if probes:
            seen.add(path.relative_to(ROOT / "warpbots").as_posix() if path in SOURCES else path.name)
    assert seen == set(_SNIFFS)


def test_slow_tests_exist():
    """A renamed test does not silently drop out of the list and return to the quick suite."""
    lines = [line for line in (ROOT / "tests" / "slow.txt").read_text().splitlines() if not line.startswith("#")]
    for line in lines:
        test, covered = line.split(" | ")
        file, name = test.split("::")
        assert f"def {name.split('[')[0]}(" in (ROOT / file).read_text(), test
        assert covered
    for case in (ROOT / "tests" / "slow_cases.txt").read_text().splitlines():
        file, name = case.split("::")
        assert f"def {name.split('[')[0]}(" in (ROOT / file).read_text(), f"{case}: run tests/slow_cases.py"


def test_no_two_classes_share_a_name():
    """One name, one thing: a search for a class by its name finds the class that is meant."""
    homes: dict[str, list[str]] = {}
    for path, tree in trees_with("class "):
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(path.name)
    shared = {name: files for name, files in homes.items() if len(files) > 1}
    assert not shared, shared
