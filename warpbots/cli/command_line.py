"""The parser of the command line, with all commands, options and examples, and the function that runs it."""

import argparse
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

import warpbots as wb
from warpbots.cli.convert import convert
from warpbots.cli.info import info
from warpbots.cli.lab import grade_lab, make_lab
from warpbots.cli.motions import bench, render, simulate, view
from warpbots.cli.new import new
from warpbots.cli.simulations import add_motion, add_root, add_scene, count, fraction, positive
from warpbots.cli.sweep import sweep
from warpbots.cli.train import train
from warpbots.input_files import recording
from warpbots.output_files import protecting

__all__ = ["main", "parser"]

_EXAMPLES = {
    "train": (
        "train walker.usda",
        "train walker.usda --iterations 50 --resume",
        "train robot.urdf --steps 200",
        "train walker.usda --worlds 8 --vary 0.2",
    ),
    "sweep": (
        "sweep walker.usda --over seed 0 1 2 3 4",
        "sweep walker.usda --over lr 0.01 0.03 --over seed 0 1 2 --iterations 50 --resume",
    ),
    "simulate": ("simulate walker.usda", "simulate walker.usda --controller output/walker/controller.pt"),
    "info": ("info walker.usda", "info walker.usda --solver springs --dx 0.02"),
    "view": ("view walker.usda", "view robot.urdf --steps 200", "view walker.usda --no-open --out walker.html"),
    "bench": ("bench walker.usda", "bench walker.usda --controller output/walker/controller.pt", "bench robot.urdf"),
    "render": (
        "render walker.usda walker.mp4",
        "render walker.usda walker.gif --controller output/walker/controller.pt",
        "render walker.usda walker.png --frames 4",
    ),
    "convert": ("convert robot.xml robot.usda", "convert robot.urdf robot.xml", "convert scene.usda scene.usdc"),
    "new": ("new crawler",),
    "lab": ("lab make tutorials/labs/*.py --out course", "lab grade submitted tutorials/labs/01_springs_and_time.py"),
}
"""Example command lines for the help of each command, without the name of the program."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: Words of the command line after the name of the program; None for the arguments of this process.

    Returns:
        Exit status: 0 after success, 2 after bad input, 1 after a failed simulation, or 130 after Ctrl-C.
    """
    options = parser().parse_args(arguments)
    torch.set_num_threads(1)  # operations are small here: a second thread costs more than it saves
    usual, warnings.formatwarning = warnings.formatwarning, _one_paragraph
    try:
        with recording() as sources, protecting(sources):
            options.run(options)
    except KeyboardInterrupt:
        print("warpbots: interrupted; no file is half written", file=sys.stderr)
        return 130
    except (OSError, ValueError, TypeError, ImportError) as fault:
        print(f"warpbots: {fault}", file=sys.stderr)
        return 2
    except (RuntimeError, FloatingPointError, MemoryError) as fault:
        print(f"warpbots: {fault}", file=sys.stderr)
        return 1
    finally:
        warnings.formatwarning = usual
    return 0


def _one_paragraph(message: Warning | str, *_: object) -> str:
    """The text of a warning without file and line, which are of no use to the user of a command."""
    return f"warpbots: {message}\n"


def parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    whole = argparse.ArgumentParser(
        prog="warpbots",
        description="Differentiable simulation of robots.",
        epilog="examples:\n" + "".join(f"  warpbots {lines[0]}\n" for lines in _EXAMPLES.values()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    whole.add_argument("--version", action="version", version=wb.__version__)
    commands = whole.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: Callable[[argparse.Namespace], None], text: str) -> argparse.ArgumentParser:
        made = commands.add_parser(
            name,
            help=text,
            description=text.capitalize() + ".",
            epilog="examples:\n" + "".join(f"  warpbots {line}\n" for line in _EXAMPLES[name]),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        made.set_defaults(run=run)
        return made

    trainer = command("train", train, "train a controller by gradient; write it, its loss and its motion to a folder")
    _add_train(trainer)
    _add_sweep(command("sweep", sweep, "train with every combination of some options, side by side"), trainer)
    simulated = command("simulate", simulate, "simulate and write the motion to a folder")
    add_scene(simulated)
    add_motion(simulated)
    _add_folder(simulated)
    add_scene(command("info", info, "print the contents of a scene, its parameters and the stable time step"))
    viewed = command("view", view, "simulate, and show the motion as a page in the browser, without a network")
    add_scene(viewed)
    add_motion(viewed, "a demonstration, in which each actuator follows a wave")
    viewed.add_argument("--out", type=Path, help="the page (.html); default: output/NAME-OF-FILE/view.html")
    viewed.add_argument("--no-open", dest="open", action="store_false", help="write the page only")
    benched = command("bench", bench, "simulate live in the browser, with sliders and a mouse that pulls at bodies")
    add_scene(benched)
    benched.add_argument("--controller", type=Path, help="controller.pt of a training; default: sliders")
    benched.add_argument("--out", type=Path, help="folder of recordings; default: output/NAME-OF-FILE")
    benched.add_argument("--port", type=int, default=0, help="port of the page; default: a free one")
    benched.add_argument("--no-open", dest="open", action="store_false", help="print the address only")
    _add_render(command("render", render, "simulate, and write a film (.mp4, .gif) or a film strip (.png)"))
    converted = command("convert", convert, "write a robot or a scene as USD, MJCF or URDF")
    converted.add_argument("scene", metavar="FILE", help="robot (.urdf, or .xml for MJCF) or USD scene")
    converted.add_argument(
        "out", type=Path, metavar="OUT", help="file to write: .usda, .usdc or .usd, .xml (MJCF) or .urdf"
    )
    add_root(converted)
    command("new", new, "make a project: a folder with a scene, a training script and a test").add_argument(
        "name", metavar="NAME", help="folder to make"
    )
    _add_lab(command("lab", lambda options: None, "make the notebooks of a lab, or grade what students hand in"))
    return whole


def _add_lab(command: argparse.ArgumentParser) -> None:
    parts = command.add_subparsers(required=True, metavar="make|grade")
    made = parts.add_parser("make", help="write the notebooks for students, lecturers, nbgrader and Otter")
    made.add_argument("source", nargs="+", metavar="LAB", help="source of a lab (.py)")
    made.add_argument("--out", type=Path, default=Path("course"), help="folder of the course (%(default)s)")
    made.set_defaults(run=make_lab)
    graded = parts.add_parser("grade", help="run what students handed in, with the hidden tests; write a table")
    graded.add_argument("folder", type=Path, metavar="FOLDER", help="folder with STUDENT/LAB.ipynb or STUDENT.ipynb")
    graded.add_argument("source", metavar="LAB", help="source of the lab (.py)")
    graded.add_argument("--out", type=Path, help="folder for the table and the feedback; default: FOLDER-graded")
    graded.add_argument("--parallel", type=count, help="notebooks at once; default: the number of cores")
    graded.add_argument("--timeout", type=positive, default=120.0, help="longest time of a cell [s] (%(default)s)")
    graded.set_defaults(run=grade_lab)


def _add_folder(command: argparse.ArgumentParser) -> None:
    command.add_argument("--out", type=Path, help="output folder; default: output/NAME-OF-FILE")


def _add_train(command: argparse.ArgumentParser) -> None:
    add_scene(command)
    command.add_argument("--steps", type=count, help="control intervals to simulate; default: the scene's")
    _add_folder(command)
    command.add_argument(
        "--iterations",
        type=count,
        default=25,
        help="iterations of the optimiser, including those before --resume (%(default)s)",
    )
    command.add_argument("--lr", type=positive, default=3e-2, help="learning rate of Adam (%(default)s)")
    command.add_argument("--seed", type=int, default=1, help="seed of the initial weights (%(default)s)")
    command.add_argument(
        "--worlds",
        type=count,
        default=1,
        help="robots to train at once, with varied parameters; torchrun divides them among processes (%(default)s)",
    )
    command.add_argument(
        "--vary",
        type=fraction,
        default=0.1,
        help="largest relative difference in stiffness, density, mass and friction (%(default)s)",
    )
    again = command.add_mutually_exclusive_group()
    again.add_argument("--resume", action="store_true", help="resume the training in the folder")
    again.add_argument("--overwrite", action="store_true", help="replace the training in the folder")


def _add_sweep(command: argparse.ArgumentParser, trainer: argparse.ArgumentParser) -> None:
    command.add_argument("scene", metavar="FILE", help="USD scene, or robot (.urdf, or .xml for MJCF)")
    command.add_argument(
        "--over",
        nargs="+",
        action="append",
        required=True,
        metavar=("OPTION", "VALUE"),
        help="an option of train and its values, as in --over seed 0 1 2; repeat it to combine several options",
    )
    command.add_argument("--iterations", type=count, help="iterations of every trial; default: as for train")
    command.add_argument("--out", type=Path, help="output folder; default: output/NAME-OF-FILE-sweep")
    command.add_argument("--parallel", type=count, help="trials at once; default: the number of cores")
    again = command.add_mutually_exclusive_group()
    again.add_argument("--resume", action="store_true", help="keep finished trials, and go on with the others")
    again.add_argument("--overwrite", action="store_true", help="remove the trials in the folder, and run all again")
    command.add_argument("--device", help="Warp device, such as cpu or cuda:0")
    add_root(command)
    command.set_defaults(trainer=trainer)


def _add_render(command: argparse.ArgumentParser) -> None:
    add_scene(command)
    command.add_argument("out", type=Path, metavar="OUT", help="file to write: .mp4, .gif or .png")
    add_motion(command)
    command.add_argument("--fps", type=positive, default=25.0, help="frames per second of a film (%(default)s)")
    command.add_argument("--seconds", type=positive, help="duration of a film [s]; default: real time")
    command.add_argument("--width", type=count, default=560, help="width of a film [pixels] (%(default)s)")
    command.add_argument("--frames", type=count, default=6, help="pictures of a film strip (%(default)s)")
