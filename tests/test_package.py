"""The published package: one version, the dependencies that it needs, and a consistent recipe for conda-forge."""

import ast
import re
import shlex
import subprocess
import sys
import tomllib
from importlib.metadata import metadata, packages_distributions
from pathlib import Path

import pytest
import yaml
from repository_tests import REPOSITORY

import warpbots as wb
from warpbots import cli

ROOT = Path(__file__).resolve().parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
EXTRAS = PROJECT["optional-dependencies"]
RECIPE = yaml.safe_load((ROOT / "recipe" / "recipe.yaml").read_text())
CONDA = {"matplotlib": "matplotlib-base", "torch": "pytorch", "usd-core": "openusd"}
"""Names on conda-forge that are others than those on PyPI."""


def name(requirement: str) -> str:
    """Name of a package, without its extras, version and marker."""
    return re.match(r"[A-Za-z0-9_.-]+", requirement)[0].lower()


def test_there_is_one_version():
    """It is in warpbots/__init__.py; all other places and the changelog have the same version."""
    assert "version" in PROJECT["dynamic"]
    assert PYPROJECT["tool"]["hatch"]["version"]["path"] == "warpbots/__init__.py"
    assert metadata("warpbots")["Version"] == wb.__version__
    assert re.findall(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.M) == [wb.__version__]
    assert RECIPE["context"]["version"] == wb.__version__


@pytest.mark.parametrize(("headings", "version", "right"), [
    ("Unreleased", "0.1.0", True), ("0.1.0", "0.1.0", True), ("Unreleased 0.1.0", "0.2.0", True),
    ("Unreleased 0.1.0", "0.1.0", False), ("0.1.0", "0.2.0", False), ("0.2.0 0.1.0", "0.1.0", False),
])  # fmt: skip
def test_what_a_changelog_may_say(headings, version, right):
    assert of_changelog("".join(f"## {h}\n\n" for h in headings.split()), version) == right


def test_the_changelog_is_at_the_version():
    assert of_changelog((ROOT / "CHANGELOG.md").read_text(), wb.__version__)


def of_changelog(text: str, version: str) -> bool:
    """Whether a version is the last release, or, with unreleased changes, a later one."""
    headings = [re.match(r"\[?([\w.]+)", h)[1] for h in re.findall(r"^## (.*)$", text, re.M)]
    if headings[0] != "Unreleased":
        return headings[0] == version
    return all(numbers(version) > numbers(released) for released in headings[1:])


def test_a_tag_of_another_version_is_not_published():
    """The changelog must name the tagged version, and the repository must have an address."""
    released = [sys.executable, str(ROOT / ".ci" / "package"), "--release", "v99.0.0"]
    done = subprocess.run(released, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"the tag is v99.0.0, and the version {wb.__version__}" in done.stderr


def numbers(version: str) -> list[int]:
    return [int(n) for n in version.split(".")]


def test_pythons_are_the_same_everywhere():
    """Every Python from the lowest on is tested by CI, and no unreleased Python is excluded."""
    pythons = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert PROJECT["requires-python"] == f">={pythons[0]}"
    assert numbers(pythons[-1])[1] - numbers(pythons[0])[1] == len(pythons) - 1
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())["jobs"]
    assert jobs["test"]["strategy"]["matrix"]["python"] == pythons
    for page in ("README.md", "docs/install.md"):
        assert f"{pythons[0]} to {pythons[-1]}" in (ROOT / page).read_text(), page


def imported() -> set[str]:
    """Packages that warpbots imports at any place."""
    found = set()
    templates = ROOT / "warpbots" / "cli" / "project"  # of projects that import their own files
    for path in (ROOT / "warpbots").rglob("*.py"):
        for node in () if path.parent == templates else ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                found.add(node.module.partition(".")[0])
    return found - sys.stdlib_module_names - {"warpbots"}


def test_what_is_needed_is_imported_and_what_is_imported_is_needed():
    """A package that tests alone import is a dependency of theirs."""
    owners = {
        package: {form for o in found for form in (o.lower(), o.lower().replace("_", "-"))}
        for package, found in packages_distributions().items()
    }
    missing = {"rsl_rl": {"rsl-rl-lib"}, "stable_baselines3": {"stable-baselines3"}}  # whose names differ
    used = {package: owners.get(package, missing.get(package, {package})) for package in imported()}
    needed = {name(r) for r in PROJECT["dependencies"]}
    own = set(EXTRAS) - {"benchmark", "dev", "docs", "test"}
    optional = {name(r) for extra in own for r in EXTRAS[extra]}
    brought = {"comm", "ipython", "typing_extensions"}  # by ipywidgets and torch
    assert needed <= set().union(*used.values())
    assert {package for package, found in used.items() if not found & (needed | optional | brought)} == set()


def test_extras_are_composed_of_one_another():
    """An extra that contains all packages of another extra names that extra."""
    for extra, requirements in EXTRAS.items():
        for other, parts in EXTRAS.items():
            assert extra == other or not set(parts) <= set(requirements), f"{extra} repeats {other}"
    composed = [r for requirements in EXTRAS.values() for r in requirements if name(r) == "warpbots"]
    assert {part for r in composed for part in re.search(r"\[(.*)\]", r)[1].split(",")} <= EXTRAS.keys()


def test_the_recipe_for_conda_says_what_the_project_says():
    run = dict(line.split(" ", 1) for line in RECIPE["requirements"]["run"])
    assert run.pop("python") == ">=${{ python_min }}"
    assert f">={RECIPE['context']['python_min']}" == PROJECT["requires-python"]
    wanted = {name(r): r[len(name(r)) :] for r in PROJECT["dependencies"]}
    assert run == {CONDA.get(n, n): bound for n, bound in wanted.items()}
    backend = {line.split()[0]: line for line in RECIPE["requirements"]["host"]}["hatchling"]
    assert [backend.replace(" ", "")] == PYPROJECT["build-system"]["requires"]
    scripts = [f"{script} = {target}" for script, target in PROJECT["scripts"].items()]
    assert RECIPE["build"]["python"]["entry_points"] == scripts
    about = RECIPE["about"]
    assert (
        about["repository"]
        == about["homepage"]
        == PYPROJECT["tool"]["hatch"]["metadata"]["hooks"]["custom"]["repository"]
    )
    assert (about["license"], about["summary"]) == (PROJECT["license"], PROJECT["description"])
    assert [about["license_file"]] == PROJECT["license-files"]


def test_what_the_recipe_tests_is_there():
    python, script = RECIPE["tests"]
    names = {module.partition(".")[2] for module in python["python"]["imports"]} - {""}
    assert all((ROOT / "warpbots" / module / "__init__.py").is_file() for module in names)
    for line in script["script"]:
        if line.startswith("warpbots ") and "--version" not in line:
            cli.parser().parse_args(shlex.split(line)[1:])


def test_tests_without_the_repository_are_those_that_need_no_other_folder():
    """The published source has the package and the tests; conftest.py lists what reads other folders, or imports that."""
    folders = re.compile(r"(benchmarks|tutorials|docs|usd_scenes|recipe|\.ci|\.github|\.binder)$")
    listed = tuple(entry.removesuffix("/") for entry in REPOSITORY)
    modules = {Path(entry).stem for entry in REPOSITORY if entry.endswith(".py")}
    kept = {"conftest.py", "two_processes.py"}  # the list itself; and what runs for test_processes.py alone
    kept |= {"cases.py", "test_own_solver.py"}  # docs/examples/own_solver.py is in the source, too
    missing = set()
    for path in (ROOT / "tests").rglob("*.py"):
        name = path.relative_to(ROOT / "tests").as_posix()
        nodes = [*ast.walk(ast.parse(path.read_text()))]
        texts = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
        imports = {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
        if (any(map(folders.match, texts)) or imports & modules) and name not in kept and not name.startswith(listed):
            missing.add(name)
    assert missing == set()
