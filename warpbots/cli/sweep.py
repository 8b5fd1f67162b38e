"""``warpbots sweep``: runs a training for every combination of the values of some options, in parallel."""

import argparse
import csv
import dataclasses
import itertools
import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

import warpbots as wb
from warpbots.cli import simulations
from warpbots.cli.train import trained
from warpbots.output_files import replacing
from warpbots.scene import fingerprint

__all__ = ["Trial", "sweep", "trials"]

_RETRIES = 3
"""Largest number of times that a trial is resumed after its process has died."""

_VARIED = ("seed", "lr", "iterations", "steps", "solver", "dx", "dt", "substeps", "worlds", "vary")
"""Options of ``warpbots train`` that may differ between trials."""


@dataclasses.dataclass(frozen=True)
class Trial:
    """One training of a sweep.

    Attributes:
        settings: Values of the varied options, as texts, by the name of the option.
        words: All options as words of a command line, without the option for the folder.
        options: All options, parsed.
        scene: Hash of the scene, from which a change of the scene is recognised.
    """

    settings: dict[str, str]
    words: tuple[str, ...]
    options: argparse.Namespace
    scene: str

    @property
    def folder(self) -> Path:
        """The folder for the results of the trial."""
        return self.options.out

    @property
    def result(self) -> dict[str, Any] | None:
        """The result in the folder of the trial.

        None if there is none, or if its options or its scene were different.
        """
        file = self.folder / "result.json"
        found = json.loads(file.read_text()) if file.is_file() else {}
        return found if (found.get("words"), found.get("scene")) == (list(self.words), self.scene) else None

    def run(self) -> float:
        """Train, and write the result at the end.

        If an earlier process has died, the training resumes from its checkpoint.

        Returns:
            The smallest loss.
        """
        self.options.resume = (self.folder / "checkpoint.pt").is_file()
        self.options.overwrite = not self.options.resume
        history = trained(self.options)
        result = {
            "settings": self.settings, "words": self.words, "scene": self.scene,
            "loss": history.loss[history.best], "iterations": len(history.loss) - 1, "seconds": history.seconds[-1],
        }  # fmt: skip
        with replacing(self.folder / "result.json") as (temporary,):
            temporary.write_text(json.dumps(result, indent=1))
        return result["loss"]


def trials(options: argparse.Namespace) -> list[Trial]:
    """One trial for each combination of the values in the options ``--over``; the last option varies fastest.

    Args:
        options: Options of the sweep. Their entry `trainer` is the parser of ``warpbots train``, which ends the program
            if a value is illegal.

    Raises:
        ValueError: An option has no values, is given twice, or cannot be varied.
    """
    names = [words[0] for words in options.over]
    for name in names:
        if name not in _VARIED:
            raise ValueError(f"sweep: --over takes the options {', '.join(_VARIED)} of 'warpbots train', got {name!r}")
    if len(set(names)) < len(names) or any(len(words) < 2 for words in options.over):
        raise ValueError("sweep: give each option once, with values, as in --over seed 0 1 2 --over lr 0.01 0.03")
    content = fingerprint(simulations.read(options.scene, options.asset_root))
    folder = (options.out or Path("output") / f"{Path(options.scene).stem}-sweep").resolve()
    made = []
    for values in itertools.product(*(words[1:] for words in options.over)):
        settings = dict(zip(names, values, strict=True))
        varied = [word for name, value in settings.items() for word in (f"--{name}", value)]
        words = (str(Path(options.scene).resolve()), *options.fixed, *varied)
        where = folder / ",".join(f"{n}={v}" for n, v in settings.items()).replace("/", "_")
        parsed = options.trainer.parse_args([*words, "--out", str(where)])
        made.append(Trial(settings, words, parsed, content))
    return made


def sweep(options: argparse.Namespace) -> None:
    """Run the trials in parallel, and write a table and a figure of their losses."""
    options.fixed = [
        word
        for name in ("iterations", "asset_root", "device")
        if (value := getattr(options, name)) is not None
        for word in (f"--{name.replace('_', '-')}", str(value))
    ]
    planned = trials(options)
    try:
        import ray
    except ImportError:
        raise ImportError('sweep: ray is not installed; pip install "warpbots[sweep]"') from None
    folder = planned[0].folder.parent
    if not options.resume:
        _make_room(planned, options.overwrite)
    folder.mkdir(parents=True, exist_ok=True)
    waiting = [trial for trial in planned if trial.result is None]
    print(f"{len(planned)} trials, of which {len(planned) - len(waiting)} are finished", flush=True)
    failed = _run(ray, waiting, options.parallel)
    if finished := [trial for trial in planned if trial.result is not None]:
        _write(folder, finished)
        best = min(finished, key=lambda trial: trial.result["loss"])
        print(f"best: loss {best.result['loss']:.4g}, {best.folder.name}\nwrote {folder}/sweep.csv and sweep.png")
    if failed:
        raise RuntimeError(f"sweep: {len(failed)} of {len(planned)} trials failed; --resume runs them again")


def _make_room(planned: list[Trial], overwrite: bool) -> None:
    """Remove the results of an earlier sweep from the folders of trials if `overwrite` is set.

    Raises:
        FileExistsError: The folders contain results, and `overwrite` is not set.
    """
    there = [trial.folder for trial in planned if trial.folder.exists()]
    finished = sum((folder / "result.json").is_file() for folder in there)
    if there and not overwrite:
        raise FileExistsError(
            f"sweep: {there[0].parent} has {len(there)} of these {len(planned)} trials from an earlier run, {finished} "
            f"of them finished; keep them and run the others with --resume, remove them with --overwrite, or choose "
            f"another folder with --out"
        )
    for folder in there:
        shutil.rmtree(folder)


def _started(ray: Any, parallel: int | None) -> None:
    """Start Ray.

    Raises:
        RuntimeError: Ray does not start.
    """
    try:
        ray.init(num_cpus=parallel, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    except Exception as fault:  # Ray raises errors of its own, of gRPC and of Redis
        reason = " ".join(str(fault).split())[:300] or type(fault).__name__
        address = os.environ.get("RAY_ADDRESS")
        remedy = (
            f"there may be no Ray at RAY_ADDRESS={address}, unset it"
            if address
            else "end what is left of earlier ones with 'ray stop', and see that there is room in /dev/shm and /tmp"
        )
        raise RuntimeError(
            f"sweep: Ray, which runs the trials, did not start: {reason}; {remedy}, or run the trials one by one with "
            f"'warpbots train'"
        ) from fault


def _run(ray: Any, waiting: Iterable[Trial], parallel: int | None) -> list[Trial]:
    """Run trials in processes of Ray with one thread each, and return the trials that failed.

    Args:
        ray: The package Ray.
        waiting: The trials.
        parallel: Largest number of trials that run at the same time; None for one trial per core.
    """
    _started(ray, parallel)
    failed = []
    try:
        start = ray.remote(num_cpus=1, max_retries=_RETRIES)(Trial.run).remote
        running = {start(trial): trial for trial in waiting}
        while running:
            (done,), _ = ray.wait(list(running))
            trial = running.pop(done)
            try:
                said = f"loss {ray.get(done):.4g}"
            except ray.exceptions.RayError as fault:
                failed.append(trial)
                said = f"failed: {getattr(fault, 'cause', None) or fault}"
            print(f"{trial.folder.name}: {said}", flush=True)
    except ray.exceptions.RayError as fault:
        raise RuntimeError(
            f"sweep: Ray has ended while trials were running: {fault}; their checkpoints are kept, go on with --resume"
        ) from fault
    finally:
        ray.shutdown()
    return failed


def _write(folder: Path, finished: list[Trial]) -> None:
    """Write a table with a row for each finished trial, and a figure of the losses."""
    numbers = "loss", "iterations", "seconds"
    with replacing(folder / "sweep.csv") as (temporary,), temporary.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow([*finished[0].settings, *numbers, "folder"])
        for trial in finished:
            rows.writerow([*trial.settings.values(), *(trial.result[n] for n in numbers), trial.folder.name])
    runs: dict[str, list[np.ndarray]] = {}
    for trial in finished:
        label = ", ".join(f"{n} {v}" for n, v in trial.settings.items() if n != "seed") or "all seeds"
        table = np.genfromtxt(trial.folder / "loss.csv", delimiter=",", names=True)
        runs.setdefault(label, []).append(np.atleast_1d(table["loss"]))
    wb.view.save_losses(folder / "sweep.png", runs)
