"""Writes ``slow_cases.txt``, the cases of tests that only the slow run takes: ``python tests/slow_cases.py``.

Runs the quick tests in both precisions, with the cases that are listed so far, and measures the time of the processor
that each case takes, without compilation. Of a test with several cases, the cheapest case stays in the quick run, and
so do all cases below `LONGEST_CASE`; the others are listed. Tests whose only case is expensive are not touched: see
``slow.txt``.
"""

import collections
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
LIST = HERE / "slow_cases.txt"
LONGEST_CASE = 0.5
"""Time that a case of the quick run takes at most, unless it is the cheapest case of its test [s]."""
FOLDER = "WARPBOTS_TEST_COSTS"
"""Variable with the folder into which every worker writes what its tests cost."""


class Costs:
    """Plug-in that writes a line for each test: its name and the time that it takes, without compilation [s]."""

    def __init__(self, folder):
        import warp._src.build as build

        self._file = (Path(folder) / f"{os.getpid()}.jsonl").open("a")
        self._compilation = 0.0
        build_cpu = build.build_cpu

        def timed(*words, **options):
            start = time.thread_time()
            try:
                return build_cpu(*words, **options)
            finally:
                self._compilation += time.thread_time() - start

        build.build_cpu = timed

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item):
        start, compilation = time.process_time(), self._compilation
        yield
        cost = time.process_time() - start - (self._compilation - compilation)
        print(json.dumps([item.nodeid, cost]), file=self._file, flush=True)


def pytest_configure(config):
    config.pluginmanager.register(Costs(os.environ[FOLDER]))


def chosen(costs: dict[str, float]) -> list[str]:
    """Cases to be listed, by name and cost [s] of all cases; a case that takes next to no time was skipped."""
    tests = collections.defaultdict(list)
    for case, cost in costs.items():
        if cost > 0.05:
            tests[case.split("[")[0]].append(case)
    further = (sorted(cases, key=costs.get)[1:] for cases in tests.values())
    return sorted(case for cases in further for case in cases if costs[case] > LONGEST_CASE)


def main() -> None:
    """Measure and write the list."""
    costs = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        for precision, options in (("float32", []), ("float64", ["-m", "verification"])):
            variables = os.environ | {
                "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path]), FOLDER: folder, "WARPBOTS_PRECISION": precision
            }  # fmt: skip
            command = ["pytest", "-n", "auto", "--dist", "worksteal", "-q", "-p", "slow_cases", *options]
            subprocess.run([sys.executable, "-m", *command], cwd=HERE.parent, env=variables, check=True)
        for path in Path(folder).iterdir():
            for line in path.read_text().splitlines():
                case, cost = json.loads(line)
                costs[case] = max(costs[case], cost)
    LIST.write_text("".join(f"{case}\n" for case in chosen(costs)))


if __name__ == "__main__":
    main()
