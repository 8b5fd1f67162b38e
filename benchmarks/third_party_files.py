"""Test of reading third-party robots, stages and meshes.

    python benchmarks/third_party_files.py FOLDER_OR_FILE ... [--motion] [--sample N] [--csv FILE] [--json]

Every file is loaded in a process with limits on time and memory, so that a hang or a crash is also an outcome. Prints a
table of outcomes by kind of file, the reasons of refusals, masses that differ from the file (URDF, USD) or from MuJoCo
(MJCF), and with ``--motion`` the deviation from the motion in MuJoCo within 50 ms. If a file can only be read with an
argument from the user, such as a material or a unit, the script supplies one. For a single file all messages are
printed: attach them to the report of a fault.
"""

import argparse
import contextlib
import csv
import itertools
import json
import multiprocessing
import os
import re
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

HERE = Path(__file__).resolve().parent
KINDS = {
    "URDF": (".urdf",), "MJCF": (".xml", ".mjcf"), "USD": (".usd", ".usda", ".usdc", ".usdz"),
    "mesh": (".stl", ".obj", ".ply", ".off", ".glb", ".gltf", ".dae", ".3mf", ".amf"),
}  # fmt: skip
OUTCOMES = (
    "loads", "loads, with a warning", "loads, after an answer", "refused", "raw traceback", "crashed", "timed out",
    "out of memory", "a file is not there", "holds no bodies",
)  # fmt: skip
"""Possible outcomes of a file; the last two are not faults of the reader."""
APART = 1e-3
"""Largest deviation of motions that counts as equal [m]."""


def main() -> None:
    """Find files, load them and print the outcomes."""
    options = _parser().parse_args()
    files = [
        (kind, path)
        for kind in options.only or KINDS
        for path in spread([p for place in options.paths for p in found(kind, place.absolute())])[: options.sample]
    ]
    rows = []
    for row in outcomes(files, options):
        rows.append(row)
        if options.json:
            print(json.dumps(row), flush=True)
        elif sys.stderr.isatty():
            print(f"{len(rows)} of {len(files)}", end="\r", file=sys.stderr)
    if options.csv:
        write(rows, options.csv)
    if not options.json:
        print(single(rows[0]) if len(rows) == 1 else report(rows, options.examples))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="folders or files")
    parser.add_argument("--only", nargs="+", choices=KINDS, help="kinds of files")
    parser.add_argument("--sample", type=int, metavar="N", help="at most N files of a kind, spread over the folders")
    parser.add_argument("--motion", action="store_true", help="compare the motion of robots with MuJoCo's")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="files at a time (%(default)s)")
    parser.add_argument("--seconds", type=float, default=60.0, help="for one file (%(default)g)")
    parser.add_argument("--memory", type=float, default=8.0, help="for one process [GB] (%(default)g)")
    parser.add_argument("--examples", type=int, default=1, help="files named for each reason (%(default)s)")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write a row for each file")
    parser.add_argument("--json", action="store_true", help="one JSON object per file on a line of its own")
    return parser


def found(kind: str, place: Path) -> Iterator[Path]:
    """Files of a kind at a path or below the path; an XML file counts only if it is MJCF."""
    for path in [place] if place.is_file() else place.rglob("*"):
        named = path.suffix.lower() in KINDS[kind] and path.is_file()
        if named and (kind != "MJCF" or re.search(rb"<mujoco\b", path.read_bytes())):
            yield path


def spread(paths: list[Path], depth: int = 0) -> list[Path]:
    """Sort `paths` so that one file from each folder follows in turn, at every level of folders."""
    if len(paths) < 2:
        return paths
    folders: dict[tuple, list[Path]] = {}
    for path in sorted(set(paths)):
        folders.setdefault(path.parts[depth : depth + 1], []).append(path)
    turns = itertools.zip_longest(*(spread(inside, depth + 1) for inside in folders.values()))
    return [path for turn in turns for path in turn if path]


class Worker:
    """A process that loads one file after another, and is replaced when it fails."""

    def __init__(self, options: argparse.Namespace):
        self._options = options
        self._process = None

    def _start(self) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._end, other = spawn.Pipe()
        words = (other, self._options.memory, self._options.motion)
        self._process = spawn.Process(target=serve, args=words, daemon=True)
        self._process.start()
        other.close()
        self._end.recv()  # imports are complete

    def ask(self, kind: str, path: Path) -> dict:
        """Ask the process for the row of a file."""
        if self._process is None:
            self._start()
        self._end.send((kind, str(path)))
        try:
            if self._end.poll(self._options.seconds):
                return self._end.recv()
            failed = {"outcome": "timed out", "reason": f"after {self._options.seconds:g} s"}
        except (EOFError, ConnectionError):
            self._process.join()
            failed = {"outcome": "crashed", "reason": f"the process ended with {self._process.exitcode}"}
        self.stop()
        return {"path": str(path), "kind": kind, **failed}

    def stop(self) -> None:
        """End the process, if one is running."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._end.close()
            self._process = None


def serve(end, memory: float, motion: bool) -> None:
    """Main loop of the separate process: answer each request with the row of a file."""
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1), os.dup2(quiet, 2)
    os.chdir(tempfile.gettempdir())  # MuJoCo writes its log there
    sys.path.insert(0, str(HERE))
    from load_one_file import outcome

    with contextlib.suppress(ImportError):  # Windows has no limits
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (int(memory * 1e9), int(memory * 1e9)))
    end.send(None)
    while True:
        end.send(outcome(*end.recv(), motion))


def outcomes(files: list[tuple[str, Path]], options: argparse.Namespace) -> Iterator[dict]:
    """Rows of all files, in their order."""
    workers: SimpleQueue[Worker] = SimpleQueue()
    jobs = min(options.jobs, len(files))
    for _ in range(jobs):
        workers.put(Worker(options))

    def ask(file: tuple[str, Path]) -> dict:
        worker = workers.get()
        try:
            return worker.ask(*file)
        finally:
            workers.put(worker)

    try:
        with ThreadPoolExecutor(max(jobs, 1)) as pool:
            yield from pool.map(ask, files)
    finally:
        for _ in range(jobs):
            workers.get().stop()


def write(rows: list[dict], path: Path) -> None:
    """Write all rows as a table."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(dict.fromkeys(key for row in rows for key in row)))
        writer.writeheader()
        writer.writerows(rows)


def report(rows: list[dict], examples: int) -> str:
    """The table of outcomes, reasons, masses and motions."""
    if not rows:
        return "no robots, stages or meshes were found"
    parts = [_table(rows)]
    faults = [row for row in rows if not row["outcome"].startswith("loads") and row["outcome"] != "holds no bodies"]
    for kind in KINDS:
        for what in OUTCOMES:
            parts.append(_reasons([r for r in faults if (r["kind"], r["outcome"]) == (kind, what)], examples))
    parts += [_masses(rows), _motions(rows)]
    return "\n\n".join(part for part in parts if part)


def _table(rows: list[dict]) -> str:
    kinds = [kind for kind in KINDS if any(row["kind"] == kind for row in rows)]
    count = Counter((row["outcome"], row["kind"]) for row in rows)
    lines = [["", *(f"{kind} {sum(row['kind'] == kind for row in rows)}" for kind in kinds)]]
    lines += [[what, *(str(count[what, k] or "-") for k in kinds)] for what in OUTCOMES]
    share = []
    for kind in kinds:
        whole = sum(count[what, kind] for what in OUTCOMES[:-2])
        good = sum(count[what, kind] for what in OUTCOMES[:3])
        share.append(f"{100.0 * good / whole:.1f} %" if whole else "-")
    lines += [["loads, of those that are whole", *share]]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    drawn = ["| " + " | ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) + " |" for line in lines]
    return "\n".join([drawn[0], "|" + "|".join("-" * (w + 2) for w in widths) + "|", *drawn[1:]])


def _reasons(rows: list[dict], examples: int) -> str:
    groups: dict[str, list[str]] = {}
    for row in rows:
        groups.setdefault(template(row), []).append(row["path"])
    lines = [f"{rows[0]['kind']}, {rows[0]['outcome']}: {len(rows)}"] if rows else []
    for reason, paths in sorted(groups.items(), key=lambda group: -len(group[1])):
        lines += [f"  {len(paths):4d}  {reason}", *(f"          {path}" for path in paths[:examples])]
    return "\n".join(lines)


def template(row: dict) -> str:
    """The reason in a row, with specific places, names and numbers removed."""
    text = row["reason"].replace(row["path"], "...").strip()
    if row["outcome"] == "raw traceback":
        text = text.splitlines()[-1]
    text = re.sub(r"'[^']*'|\"[^\"]*\"|(?<!\w)/[\w./<>{}-]+", "...", " ".join(text.split()))
    return re.sub(r"-?\d+\.?\d*(e[+-]?\d+)?", "#", text)[:150]


def _masses(rows: list[dict]) -> str:
    both = [row for row in rows if None not in (row.get("mass"), row.get("mass_said"))]
    wrong = [r for r in both if abs(r["mass"] - r["mass_said"]) > 1e-6 * max(r["mass_said"], 1e-3)]
    lines = [f"masses: {len(both)} compared, {len(wrong)} differ"] if both else []
    lines += [f"  {r['mass']:.6g} kg, {r['mass_said']:.6g} kg said: {r['path']}" for r in wrong]
    return "\n".join(lines)


def _motions(rows: list[dict]) -> str:
    moved = sorted((row["motion"], row["path"]) for row in rows if "motion" in row)
    if not moved:
        return ""
    far = [(apart, path) for apart, path in moved if not apart <= APART]
    middle = statistics.median(apart for apart, _ in moved)
    lines = [f"motions: {len(moved)} compared, median {middle:.1e}, {len(far)} over {APART:g}"]
    lines += [f"  {apart:.2g}: {path}" for apart, path in far]
    notes = [row for row in rows if "motion_note" in row]
    lines += [f"motions: {len(notes)} cannot be compared"] if notes else []
    return "\n".join([*lines, *(f"  {row['motion_note'][:150]}: {row['path']}" for row in notes)])


def single(row: dict) -> str:
    """Text with all messages about a single file."""
    lines = [f"{row['path']} ({row['kind']}): {row['outcome']}", row["reason"], *row.get("said", [])]
    lines += [f"passed: {name}={value}" for name, value in row.get("answers", {}).items()]
    rest = ("bodies", "mass", "mass_said", "size", "motion", "motion_note", "seconds")
    lines += [f"{name}: {row[name]}" for name in rest if row.get(name) is not None]
    return "\n".join(line for line in lines if line)


if __name__ == "__main__":
    main()
