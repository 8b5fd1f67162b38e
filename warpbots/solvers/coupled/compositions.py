"""The solvers of matter that exchange impulses with rigid bodies, and what the composition needs of each of them."""

import dataclasses
from collections.abc import Callable

from warpbots.scene import bars_of
from warpbots.solvers.coupled.exchange_arrays import GridArrays, MassArrays
from warpbots.solvers.coupled.grid_exchange import GridExchange
from warpbots.solvers.coupled.mass_exchange import MassExchange
from warpbots.solvers.coupled.model import MatterPoints
from warpbots.solvers.coupled.readings import MassSpringBodiesReadings, MPMBodiesReadings
from warpbots.solvers.coupled.states import MassSpringBodiesState, MPMBodiesState
from warpbots.solvers.mass_spring import MassSpring
from warpbots.solvers.mass_spring.explicit_integrators import SCHEMES
from warpbots.solvers.mass_spring.measurements import MassSpringMeasurement
from warpbots.solvers.mass_spring.model import MassSpringModel
from warpbots.solvers.mpm import MPM, measurements
from warpbots.solvers.mpm.explicit_step import step, step_adjoint
from warpbots.solvers.mpm.model import MPMModel
from warpbots.solvers.scene_parts import COUPLED, COUPLED_SPRINGS

__all__ = ["CoupledMatter", "composition_of"]


@dataclasses.dataclass(frozen=True)
class CoupledMatter:
    """What `Coupled` needs of the solver of soft bodies, beyond the methods of `Solver`.

    Attributes:
        name: Name of the composition in messages.
        points: Function (solver, model): the points of matter in words and numbers.
        state: Class of the states of matter and rigid bodies.
        readings: Class of the readings.
        arrays: Function (model of the matter, mass of the rigid bodies that can move): the arrays for the exchange.
        exchange: Class of the exchange in one step, made from the step of the bodies and the state of the matter.
        integrator: Integrator of the bodies if the user chooses none.
        refuse: Function of the solver that raises an error for options which the exchange does not take.
        soft_pairs: How soft bodies touch one another, in words.
        binds: Whether a body that reaches into matter binds the points in it; otherwise such a scene is refused.
        relaxes: Whether contact removes overlaps; otherwise it only keeps them from growing.
        rounding: Radius with which edges and rims of bodies are rounded, without which points in front of a body that
            slides meet its front face [`MatterPoints.size`].
        step: Function (solver, model, state, control, state_out, dt, exchange): advances the matter.
        step_adjoint: Adjoint of `step`, with the same arguments.
        sense: Function (solver, model, state, control, readings_out, exchange): measures the matter, and records the
            adjoint.
    """

    name: str
    points: Callable[..., MatterPoints]
    state: type
    readings: type
    arrays: Callable[..., GridArrays | MassArrays]
    exchange: type
    integrator: str
    refuse: Callable[[object], None]
    soft_pairs: str
    binds: bool
    relaxes: bool
    rounding: float
    step: Callable[..., None]
    step_adjoint: Callable[..., None]
    sense: Callable[..., None]


def _particles(solver: MPM, model: MPMModel) -> MatterPoints:
    return MatterPoints(
        "particle", "cell", model.grid.dx, "MPM(dx=...)", 1.0, "it sinks into matter like a wire",
        "matter on its two sides sticks together through it", model.grid.lower, model.grid.upper,
    )  # fmt: skip


def _masses(solver: MassSpring, model: MassSpringModel) -> MatterPoints:
    bars = [truss.length.max() for body in model.scene.soft if (truss := bars_of(body.shape)) is not None]
    return MatterPoints(
        "mass", "spacing", solver.spacing, "MassSpring(spacing=...)", 2.0**0.5, "it passes between masses",
        "its edges pass between masses", longest_bar=float(max(bars, default=0.0)),
    )  # fmt: skip


def _refuse_stages(solver: MassSpring) -> None:
    if solver.scheme.stages > 1:
        single = " or ".join(f"integrator={name!r}" for name, scheme in SCHEMES.items() if scheme.stages == 1)
        raise ValueError(
            f"Coupled: MassSpring(integrator={solver.integrator!r}) gains energy in contact, because its masses move "
            f"between stages as if there were no rigid bodies; use {single}"
        )


def _sense_springs(solver: MassSpring, model, state, control, readings_out, exchange) -> None:
    MassSpringMeasurement(model, state, control, readings_out, solver.contact_damping, exchange).run()


_COMPOSITIONS = {
    MPM: CoupledMatter(
        name=COUPLED, points=_particles,
        state=MPMBodiesState, readings=MPMBodiesReadings, exchange=GridExchange,
        arrays=lambda soft, moving: GridArrays(soft),
        integrator="sdirk2",
        refuse=lambda solver: None,
        soft_pairs="soft bodies stick together where they meet in a cell",
        binds=False,
        relaxes=True,
        rounding=0.0,
        step=lambda solver, *rest: step(*rest), step_adjoint=lambda solver, *rest: step_adjoint(*rest),
        sense=lambda solver, *rest: measurements.sense(*rest),
    ),
    MassSpring: CoupledMatter(
        name=COUPLED_SPRINGS, points=_masses,
        state=MassSpringBodiesState, readings=MassSpringBodiesReadings, arrays=MassArrays, exchange=MassExchange,
        integrator="bdf1",
        refuse=_refuse_stages,
        soft_pairs="soft bodies touch under MassSpring(collision=...), without friction",
        binds=True,
        relaxes=False,
        rounding=0.25,
        step=lambda solver, *rest: solver.explicit_step(*rest).run(),
        step_adjoint=lambda solver, *rest: solver.explicit_step(*rest).adjoint(),
        sense=_sense_springs,
    ),
}  # fmt: skip


def composition_of(solver: MPM | MassSpring) -> CoupledMatter:
    """The entry of the class of a solver, or of its base class."""
    return next(_COMPOSITIONS[c] for c in type(solver).__mro__ if c in _COMPOSITIONS)
