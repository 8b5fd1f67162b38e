"""Common parts of the ChainQueen experiments: units, the command line, figures with intervals, film strips and USD.

The paper's units are dimensionless: lengths of 0.1 to 0.5, densities near 1, moduli of 10 to 400, times in units in
which gravity is of order one. Here a length of 1 is a metre, a time of 1 is a second and a density of 1 is 1000 kg/m^3,
so that a modulus of 1 is 1 kPa. The ratios E / (rho g L) and E / (rho L^2 / T^2) are the same as in the paper.
"""

import argparse
import dataclasses
import functools
import itertools
import multiprocessing
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from scipy.spatial import cKDTree

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import refined
from fast import figures, sized

import warpbots as wb
from warpbots.view.motion import collect

T = TypeVar("T")

HERE = figures(__file__)
"""Where figures go."""
KILO = 1000.0
"""Density [kg/m^3] and modulus [Pa] of one unit of the paper."""


@dataclasses.dataclass(frozen=True)
class Size:
    """How finely matter is divided.

    Attributes:
        cells: Factor of the size of cells.
        per_axis: Number of particles per cell and axis.
    """

    cells: float = 1.0
    per_axis: int = 2

    def solver(self, dx: float, dim: int) -> wb.MPM:
        """The solver for cells that have the size `dx` [m] in a small experiment."""
        return wb.MPM(dx=self.cells * dx, particles_per_cell=self.per_axis**dim)


SIZES = {"small": Size(), "full": Size(0.5, 3)}
"""Sizes of an experiment: the small one is for one core, and the full one has about as many particles as the paper."""


def options(
    about: str,
    *used: str,
    seeds: int = 0,
    names: Iterable[str] = (),
    sizes: Iterable[str] = (),
    flags: Mapping[str, str] | None = None,
) -> argparse.Namespace:
    """Read the command line: ``--device``, and the options that a script uses.

    Args:
        about: The docstring of the script.
        used: Which of the options ``"processes"``, ``"out"`` and ``"refine"`` it has.
        seeds: Number of seeds by default; 0 if it has none.
        names: Names of the parts of the experiment; none if it has no parts.
        sizes: Names of its sizes; none if it has one.
        flags: Texts of help for further flags, by name.
    """
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    if names:
        parser.add_argument("names", nargs="*", default=sized([*names], [*names][:1]), help=", ".join(names))
    parser.add_argument("--device", help="Warp device, such as cuda:0; default: the current one")
    if seeds:
        parser.add_argument("--seeds", type=int, default=sized(seeds, 1), help="number of seeds (%(default)s)")
    if sizes:
        parser.add_argument("--size", choices=[*sizes], default="small", help="number of particles (%(default)s)")
    if "processes" in used:
        parser.add_argument("--processes", type=int, default=1, help="that share the runs (%(default)s)")
    if "out" in used:
        parser.add_argument("--out", type=Path, help="folder for motions as USD; default: none are written")
    if "refine" in used:
        refined.option(parser)
    for flag, text in (flags or {}).items():
        parser.add_argument(flag, action="store_true", help=text)
    return parser.parse_args()


def in_processes(work: Callable[..., T], jobs: Iterable[tuple], processes: int) -> list[T]:
    """Call `work` with the arguments of each job, in several processes; return the results in the order of the jobs."""
    if processes == 1:
        return list(itertools.starmap(work, jobs))
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        return list(pool.map(work, *zip(*jobs, strict=True)))


def curves(
    name: str,
    runs: Mapping[str, Sequence[np.ndarray]],
    quantity: str,
    seconds: Mapping[str, Sequence[float]],
    logarithmic: bool = False,
) -> None:
    """Draw a quantity over the iterations and the time of runs of each kind, with intervals of 90 %, to ``NAME.png``.

    Args:
        name: Name of the figure.
        runs: The quantity in each iteration of each run, by kind.
        quantity: Name of the quantity with its unit.
        seconds: Time of each run [s], by kind.
        logarithmic: Whether the vertical axis is logarithmic.
    """
    each = {kind: sum(seconds[kind]) / sum(map(len, own)) for kind, own in runs.items()}
    wb.view.save_losses(HERE / f"{name}.png", runs, quantity, each, logarithmic)


def draw_fields(
    name: str, motion: wb.Trajectory[Any], fields: Sequence[str], goal: Sequence[float] | None = None
) -> None:
    """Draw the end of a motion to ``NAME.png`` once for each field, in the colours of its values, with the goal."""
    from matplotlib.figure import Figure

    sim, matter, position = motion.simulation, motion.matter, motion.final.position[0].detach().cpu().numpy()
    camera = collect(motion, [motion.steps]).camera()  # contains the corners of the skin
    size = 12.0 / len(fields), 12.0 / len(fields) / camera.aspect
    figure = Figure(figsize=(12.0, size[1] + 0.4), dpi=100, layout="constrained")
    for ax, field in zip(figure.subplots(1, len(fields), squeeze=False)[0], fields, strict=True):
        spec, value = sim.parameters()[field], motion.parameters[field][0].detach().cpu().numpy()
        label = f"{spec.doc} [{spec.unit.replace('dim', str(motion.scene.dim))}]"
        wb.view.draw(motion.scene, matter, position, ax, value=value, label=label, camera=camera, goal=goal)
    figure.savefig(HERE / f"{name}.png")


def film(
    name: str, motion: wb.Trajectory[Any], out: Path | None, frames: int = 6, goal: Sequence[float] | None = None
) -> None:
    """Draw a motion to ``NAME.png`` beside the scripts, and write it to a folder as USD.

    If matter was designed, ``NAME_fields.png`` shows the end once for each field that differs between particles, in the
    colours of its values.

    Args:
        name: Name of the files.
        motion: The motion.
        out: Folder for USD; None to write none.
        frames: Number of pictures.
        goal: Point that is marked as the goal [m], shape (dim,); None for no mark.
    """
    wb.view.film_strip(motion, frames, goal=goal).save(HERE / f"{name}.png")
    fields = [field for field, value in motion.parameters.items() if value[0].unique().numel() > 1]
    if fields:
        draw_fields(f"{name}_fields", motion, fields, goal)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        wb.usd.write(out / f"{name}.usda", motion)


def keep_found(
    name: str,
    sim: wb.Simulation,
    fields: Mapping[str, torch.Tensor],
    places: np.ndarray | None = None,
    **values: torch.Tensor | np.ndarray,
) -> None:
    """Store values that were found, and the fields of the matter that were found with them.

    Args:
        name: Name of the file.
        sim: The simulation with which they were found.
        fields: The fields by name, each with a value for each particle.
        places: Points at which the fields are stored, each with the mean of the particles that are nearest to it [m],
            shape (n, dim); None for the particles. Files of 100,000 particles would be large.
        values: The values by name.
    """
    position = sim.model.matter.position
    if places is not None:
        fields = {key: nearest_mean(field, position, places) for key, field in fields.items()}
    where = {"position": position if places is None else places} if fields else {}
    refined.keep(name, **where, **values, **{f"field.{key}": v for key, v in fields.items()})


def nearest_mean(field: torch.Tensor, position: np.ndarray, places: np.ndarray) -> torch.Tensor:
    """Mean at each of `places`, shape (m, dim), of the particles at `position`, shape (n, dim), nearest to it.

    Raises:
        ValueError: No particle is nearest to one of the places.
    """
    nearest = torch.as_tensor(cKDTree(places).query(position)[1], device=field.device)
    count = torch.bincount(nearest, minlength=len(places))
    if not count.all():
        raise ValueError(f"places must be no finer than the particles: {int((count == 0).sum())} have none")
    total = field.new_zeros((*field.shape[:-1], len(places))).index_add_(-1, nearest, field.detach())
    return total / count


def spread(fields: Mapping[str, torch.Tensor], places: np.ndarray, sim: wb.Simulation) -> dict[str, torch.Tensor]:
    """Fields at `places`, shape (n, dim) [m], on the matter of a simulation: each particle has the nearest value.

    The values are differentiable with respect to those at the places.
    """
    nearest = cKDTree(places).query(sim.model.matter.position)[1]
    return {key: v[..., nearest] for key, v in fields.items()}


def stored_fields(stored: Mapping[str, torch.Tensor], sim: wb.Simulation) -> dict[str, torch.Tensor]:
    """Stored fields on the matter of a simulation: each particle has the values of the one that was nearest at rest."""
    fields = {key.partition(".")[2]: v for key, v in stored.items() if key.startswith("field.")}
    if not fields:
        return {}
    return spread(fields, stored["position"].numpy(), sim)


def distance(motion: wb.Trajectory[Any], region: str | None = None) -> torch.Tensor:
    """Distance that the centre of mass of all matter, or of a region, has moved along x [m].

    Masses are those before any design; with one density the centre is the mean of the particles, as in the paper.
    """
    start, end = (motion.simulation.center_of_mass(state, region) for state in (motion.start, motion.final))
    return (end - start)[0, 0]


def cost(motion: wb.Trajectory[Any], region: str | None = None) -> torch.Tensor:
    """Minus the distance [m], and the cost of the signals."""
    return 0.5e-6 * motion.control.square().sum() - distance(motion, region)


def keep_walk(
    name: str,
    sim: wb.Simulation,
    policy: torch.nn.Module,
    fields: Mapping[str, torch.Tensor],
    places: np.ndarray | None = None,
) -> None:
    """Store a controller and the fields of the matter that were found with it, as `keep_found` does."""
    keep_found(name, sim, fields, places, **{f"policy.{key}": value for key, value in policy.state_dict().items()})


def load_controller(stored: Mapping[str, torch.Tensor], policy: torch.nn.Module) -> None:
    """Replace the values of `policy` by the stored ones."""
    policy.load_state_dict({key.partition(".")[2]: v for key, v in stored.items() if key.startswith("policy.")})


def designed_by(name: str) -> refined.Fields:
    """The fields that are stored under a name, as a function of a simulation."""
    return functools.partial(stored_fields, refined.kept(name))


def stored_walk(name: str, sim: wb.Simulation, policy: torch.nn.Module, steps: int) -> wb.Trajectory[Any]:
    """Play a stored controller, which replaces the values of `policy`, with the stored fields."""
    stored = refined.kept(name)
    load_controller(stored, policy)
    return sim.rollout(policy, steps, **stored_fields(stored, sim))
