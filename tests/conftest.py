"""Conditions of the tests: device, precision, selection, and no output that nobody reads."""

import gc
import os
import re
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
import warp as wp
from repository_tests import REPOSITORY

from warpbots.file_warnings import FileWarning
from warpbots.numerics import precision, threads

sys.dont_write_bytecode = False  # the tests start many processes, each of which would compile all files anew
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

ROOT = Path(__file__).resolve().parents[1]
SOLVERS = ("articulated", "mpm", "projective", "springs")
"""Folders and parameters of tests, which are markers, too."""
SLOW = {
    line.split(" | ")[0] for line in (ROOT / "tests" / "slow.txt").read_text().splitlines() if not line.startswith("#")
}
"""Tests that are slow besides those with a decorator."""
SLOW_CASES = set((ROOT / "tests" / "slow_cases.txt").read_text().splitlines())
"""Further cases of tests whose cheapest case is quick; `slow_cases.py` measures and lists them."""
OTHER_ELEMENTS = re.compile(r"\bprojective-(quadratic|hexahedra)\b")
"""General tests with elements that have tests of their own in tests/projective.

They are slow, as with linear elements they are not; and where float64 judges them, that is enough.
"""
LONGEST = ("test_cuda_source.py", "test_orders.py")
"""Files that take longest in the slow runs, which begin with them."""
LATE = "not run: the time of --until has passed"
"""Why a test is skipped that would have begun too late."""
MARKERS = (
    "verification(float32=False): judged in float64 (WARPBOTS_PRECISION=float64 pytest -m verification); with "
    "float32=True it runs in float32 too, with a tolerance of its own",
    "slow: takes more than a few seconds; runs with --slow or by name",
    *(f"{solver}: with that solver, in its folder or among the general tests" for solver in SOLVERS),
)


def pytest_addoption(parser):
    parser.addoption("--device", default="cpu", help="Warp device of the simulations (default: cpu)")
    parser.addoption("--slow", action="store_true", help="run the tests marked slow too")
    parser.addoption("--until", type=float, default=float("inf"), help="begin no test after this time [s since 1970]")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    """``-n auto`` is one worker per core, each of which takes about 1.5 GB, and at most eight."""
    return min(os.cpu_count() or 1, 8)


def pytest_configure(config):
    wp.config.log_level = wp.LOG_WARNING
    os.environ.setdefault("WARPBOTS_THREADS", "1")  # the workers of the tests use all cores
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)
    config.addinivalue_line("filterwarnings", "error")
    config.addinivalue_line("filterwarnings", "ignore:MassSpring. springs make matter")
    config.addinivalue_line("filterwarnings", "ignore:SoftBody .* its shape holds")  # coarse on purpose
    config.addinivalue_line("filterwarnings", "ignore::warpbots.FileWarning")  # tests of files look at it by `heard`
    config.addinivalue_line("filterwarnings", "ignore:SoftBody .* bending")  # likewise
    config.addinivalue_line("filterwarnings", "ignore:ProjectiveDynamics. Contact laws select")
    config.addinivalue_line("filterwarnings", "ignore:SoftBody 'winged'. sheets are membranes")  # solid of another law
    wp.set_device(config.getoption("--device"))
    if wp.get_device().is_cuda:  # a default device slows down every call of torch
        torch.set_default_device(wp.device_to_torch(wp.get_device()))
        let_tests_read_a_gpu()


def let_tests_read_a_gpu():
    """Tensors of a GPU become NumPy arrays in tests, but not in warpbots, which must call `cpu`."""

    between = (
        "numpy",
        "_core",
        "core",
        "_private",
        "torch",
        "utils",
        "_pytest",
    )  # folders of what asks on behalf of others

    def replaced(name):
        original = getattr(torch.Tensor, name)

        def read(self, *words, **options):
            frame = sys._getframe(1)
            while Path(frame.f_code.co_filename).parent.name in between or frame.f_code is read.__code__:
                frame = frame.f_back
            asks = Path(frame.f_code.co_filename).is_relative_to(ROOT / "tests")
            return original(self.cpu() if asks else self, *words, **options)

        setattr(torch.Tensor, name, read)

    for name in ("numpy", "__array__"):
        replaced(name)


def pytest_ignore_collect(collection_path):
    """Without the repository, tests that need it are left out; None leaves the choice to other plug-ins."""
    inside = collection_path.is_relative_to(ROOT / "tests") and not (ROOT / "benchmarks").is_dir()
    path = collection_path.relative_to(ROOT / "tests").as_posix() if inside else ""
    return True if f"{path}/" in REPOSITORY or path in REPOSITORY else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    for item in items:
        words = {item.path.parent.name, *re.split(r"[\[\]-]", item.name)}
        for solver in words.intersection(SOLVERS):
            item.add_marker(solver)
    if precision != "float64":
        skip = pytest.mark.skip(reason="needs WARPBOTS_PRECISION=float64")
        for item in items:
            marker = item.get_closest_marker("verification")
            once = marker is not None and OTHER_ELEMENTS.search(item.name)
            if marker is not None and (once or not marker.kwargs.get("float32", False)):
                item.add_marker(skip)
    listed = SLOW if config.pluginmanager.hasplugin("slow_cases") else SLOW | SLOW_CASES
    for item in items:
        if item.nodeid in listed or OTHER_ELEMENTS.search(item.name):
            item.add_marker("slow")
    items.sort(key=lambda item: item.path.name not in LONGEST)
    named = any("::" in str(a) for a in config.args)
    if named or config.getoption("--slow") or "slow" in config.getoption("-m"):
        return
    slow = [i for i in items if i.get_closest_marker("slow")]
    if slow:
        config.hook.pytest_deselected(items=slow)
        items[:] = [i for i in items if not i.get_closest_marker("slow")]


def pytest_collection_finish(session):
    """Modules and tests, which stay until the end, are left out of the search for garbage."""
    gc.collect()
    gc.freeze()


def pytest_runtest_setup(item):
    if time.time() > item.config.getoption("--until"):
        pytest.skip(LATE)


def pytest_terminal_summary(terminalreporter):
    late = sum(LATE in str(report.longrepr) for report in terminalreporter.stats.get("skipped", ()))
    if late:
        terminalreporter.line(f"{late} tests were not run, as the time of --until had passed", yellow=True)


def pytest_report_header(config):
    return f"warpbots: {precision} on {config.getoption('--device')}"


@pytest.fixture(autouse=True)
def seeds():
    """The same random numbers in every test, for any order of tests."""
    if wp.get_device().is_cuda:
        torch.manual_seed(0)
    else:
        torch.default_generator.manual_seed(0)  # does not note the stack for each kind of device that is absent


@pytest.fixture(autouse=True, scope="session")
def cache(tmp_path_factory):
    """Meshes are made anew in every run, not taken from the cache of the user."""
    os.environ["WARPBOTS_CACHE"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(autouse=True, scope="session")
def tree():
    """No test leaves a file in a folder of the project or in the current folder."""
    places = [Path.cwd(), ROOT, *(p for p in ROOT.iterdir() if p.is_dir() and not p.name.startswith("."))]

    def files():
        return {p for place in places for p in place.iterdir() if p.is_file() and p.suffix != ".py"}

    before = files()
    yield
    left = sorted(map(str, files() - before))
    assert not left, f"tests left {', '.join(left)}; write into tmp_path"


@pytest.fixture
def as_gpu(monkeypatch):
    """A function that makes a CPU take the choices of a GPU, for all that this test builds afterwards."""

    def choose():
        monkeypatch.setattr(threads, "_ALWAYS", True)

    return choose


@pytest.fixture
def rng():
    """A random generator with a fixed seed."""
    return np.random.default_rng(0)


class Heard:
    """Notes of warnings about files, until now."""

    def __init__(self, caught):
        self._caught = caught

    @property
    def messages(self):
        return [str(w.message) for w in self._caught if issubclass(w.category, FileWarning)]

    @property
    def text(self):
        return "\n".join(self.messages)

    @property
    def lines(self):
        """Lines about places in files, without the headings."""
        return [line.strip() for message in self.messages for line in message.splitlines()[1:]]

    def clear(self):
        self._caught.clear()


@pytest.fixture
def heard():
    """Notes of warnings about the files that a test reads and writes."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.filterwarnings("always", category=FileWarning)
        yield Heard(caught)
