"""``warpbots simulate``, ``view``, ``bench`` and ``render``: motions in files and in the browser."""

import argparse
import contextlib
import itertools
import webbrowser
from pathlib import Path
from typing import Any

import torch

import warpbots as wb
from warpbots.bench.server import require_tornado
from warpbots.cli import simulations
from warpbots.output_files import replacing
from warpbots.tables import size
from warpbots.view.film import film_writer

__all__ = ["bench", "render", "simulate", "view", "write"]

_DEMONSTRATION = "Demonstration, without a controller: each actuator follows a wave of half its range."


def simulate(options: argparse.Namespace) -> None:
    """Write a motion as GIF and USD to a folder."""
    motion = simulations.motion(options)
    write(simulations.folder(options), motion)


def write(folder: Path, motion: wb.Trajectory[Any]) -> None:
    """Write a motion as GIF and USD to `folder`, and print a list of the files in the folder."""
    wb.view.animate(folder / "motion.gif", motion)
    wb.usd.write(folder / "motion.usda", motion)
    print("wrote")
    for path in sorted(p for p in folder.iterdir() if p.is_file()):
        print(f"  {path}  ({size(path.stat().st_size)})")


def view(options: argparse.Namespace) -> None:
    """Write a motion as an HTML page, and open the page in the browser.

    Without a controller, a robot with actuators moves by a demonstration signal, as page and output say.
    """
    page = options.out or Path("output") / Path(options.scene).stem / "view.html"
    _require_ending(page, ".html")
    model, controller = simulations.controlled(options)
    steps, note = simulations.steps(options, model), ""
    if controller is None and model.channels:
        controller, note = wb.controllers.demonstration(model, steps), _DEMONSTRATION
        print(note)
    with torch.no_grad():
        motion = model.rollout(controller, steps)
    if options.out is None:
        page.parent.mkdir(parents=True, exist_ok=True)
    wb.view.save_html(page, motion, note=note)
    print(f"wrote {page}")
    if options.open and not webbrowser.open(page.resolve().as_uri()):
        print("there is no browser to open it with: open the file yourself")


def bench(options: argparse.Namespace) -> None:
    """Simulate live in the browser, until Ctrl-C; recordings are written to a folder."""
    require_tornado()
    simulation, controller = simulations.controlled(options)
    made = simulation.bench(controller=controller)

    def write_recording(motion: wb.Trajectory[Any]) -> str:
        folder = simulations.folder(options)
        path = next(p for i in itertools.count(1) if not (p := folder / f"bench-{i}.usda").exists())
        wb.usd.write(path, motion)
        print(f"wrote {path}")
        return f"{motion.steps * simulation.dt:.2f} s are in {path}"

    def opened(address: str) -> None:
        print(f"{address}\nCtrl-C ends the simulation", flush=True)
        if options.open and not webbrowser.open(address):
            print("there is no browser to open it with: open the address yourself")

    made.on_recorded = write_recording
    with contextlib.suppress(KeyboardInterrupt):
        made.serve(options.port, opened)


def render(options: argparse.Namespace) -> None:
    """Write a motion as a film or a film strip."""
    path = options.out
    _require_ending(path, ".mp4", ".gif", ".png")
    still = path.suffix.lower() == ".png"
    if not still:
        film_writer(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot write {path}: there is no folder {path.parent}; create it or choose another")
    motion = simulations.motion(options)
    if still:
        with replacing(path) as (temporary,):
            wb.view.film_strip(motion, options.frames).save(temporary)
    else:
        wb.view.animate(path, motion, options.fps, options.seconds, options.width)
    print(f"wrote {path}")


def _require_ending(path: Path, *endings: str) -> None:
    if path.suffix.lower() not in endings:
        raise ValueError(
            f"cannot write {path}: it must end in {' or '.join(endings)}, got {path.suffix or 'nothing'!r}"
        )
