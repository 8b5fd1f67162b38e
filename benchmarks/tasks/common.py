"""What the scripts of tasks share: their options, learning by several methods, and results in files."""

import argparse
import dataclasses
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

import warpbots as wb

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from fast import figures, sized  # in the folder above

__all__ = ["Found", "learn", "load", "options", "save", "show", "sized"]


@dataclasses.dataclass(frozen=True)
class Found:
    """What a method has found.

    Attributes:
        values: The unknown numbers.
        loss: Its loss [1].
        episodes: Number of rollouts.
        seconds: Duration of the search [s].
    """

    values: np.ndarray
    loss: float
    episodes: int
    seconds: float


def options(doc: str) -> argparse.ArgumentParser:
    """The options of every task."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--play", action="store_true", help="show what was found before, without learning")
    parser.add_argument("--usd", type=Path, help="where to write the motion as USD")
    parser.add_argument("--film", type=Path, help="where to write the film: .gif, .mp4, or .png for a strip")
    return parser


def learn(
    loss: Callable[[torch.Tensor], torch.Tensor], start: Sequence[float], bounds: tuple[Any, Any], scale: Any,
    method: Any, episodes: int,
) -> Found:  # fmt: skip
    """Minimise a loss of a vector of numbers.

    Args:
        loss: Maps the numbers, in double precision, to the loss.
        start: Their values at the start.
        bounds: Their lower and upper bounds.
        scale: Their typical change.
        method: A method of `warpbots.methods`.
        episodes: Largest number of rollouts.
    """
    values = torch.tensor(np.array(start, dtype=np.float64), requires_grad=True)
    lower, upper, scale = (torch.as_tensor(v, dtype=values.dtype).expand_as(values) for v in (*bounds, scale))
    unknowns = {"values": wb.Unknown(values, lower.numpy(), upper.numpy(), scale=scale.numpy())}
    history = wb.minimize(lambda: loss(values), unknowns, method, iterations=episodes, episodes=episodes)
    return Found(values.detach().numpy().copy(), history.loss[history.best], history.episodes[-1], history.seconds[-1])


def save(script: str, **arrays: np.ndarray) -> None:
    """Write what was found beside the script, as ``NAME.npz``."""
    np.savez(figures(script) / f"{Path(script).stem}.npz", **arrays)


def load(script: str) -> dict[str, np.ndarray]:
    """What `save` has written.

    Raises:
        SystemExit: There is no such file.
    """
    path = Path(script).resolve().with_suffix(".npz")
    if not path.is_file():
        raise SystemExit(f"there is no {path.name}: learn first, without --play")
    return dict(np.load(path))


def show(asked: argparse.Namespace, found: wb.Trajectory, *motions: wb.Trajectory, frames: int = 3) -> None:
    """Write the motion that was found as USD and as a film, where that was asked for.

    Args:
        asked: The options.
        found: The motion.
        *motions: Motions that a picture shows beside or above each other, such as the motion before learning.
        frames: Number of moments in a picture.
    """
    from PIL import Image

    if asked.usd:
        wb.usd.write(asked.usd, found)
    if asked.film and asked.film.suffix == ".png":
        strips = [wb.view.film_strip(motion, frames) for motion in motions]
        down = strips[0].width > strips[0].height  # strips of one row stand above each other, others beside
        corners = np.cumsum([(0, 0)] + [(0, s.height) if down else (s.width, 0) for s in strips], axis=0)
        size = np.max([corner + s.size for corner, s in zip(corners, strips, strict=False)], axis=0)
        whole = Image.new("RGB", tuple(map(int, size)), "white")
        for corner, strip in zip(corners, strips, strict=False):
            whole.paste(strip, tuple(map(int, corner)))
        whole.resize((900, 900 * whole.height // whole.width)).quantize(96).save(asked.film, optimize=True)
    elif asked.film:
        wb.view.animate(asked.film, found, fps=12.5, width=480)
