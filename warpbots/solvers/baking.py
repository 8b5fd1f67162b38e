"""Parameters of a model baked into its scene, and the fields of a scene as parameters of a model.

A value is written to a record of the scene if a record can hold it, so that file readers and other solvers find it.
Then a model is built from the new records, and every parameter that differs in any bit from the given values is stored
as a field of the scene.
"""

import dataclasses
import warnings
from collections.abc import Iterable, Mapping

import numpy as np

from warpbots.numerics.parameters import Parameter
from warpbots.scene import Field, Scene, SceneError, SoftBody
from warpbots.solvers.device_arrays import tiled
from warpbots.solvers.initial_state import state_fields
from warpbots.solvers.resampling import resampled
from warpbots.solvers.solver import Model, Solver
from warpbots.user_warning import warn_user

__all__ = ["at_rest", "baked", "with_fields"]

_SAME = 1e-9
"""Largest difference between positions of vertices that count as equal, relative to the extent of all vertices.

Rounding differs between machines."""

_AGREE = 1e-6
"""Largest difference between values of records that count as equal, relative to the largest value."""


def baked(
    solver: Solver, model: Model, values: Mapping[str, np.ndarray], world: int = 0, records: bool = True,
    start: Mapping[str, np.ndarray] | None = None,
) -> Scene:  # fmt: skip
    """The scene of `model` with its parameters baked in.

    Args:
        solver: The solver that built the model.
        model: The model, with a scene without fields, and with the parameters that `values` lacks.
        values: Parameters by name, in the type of the model's arrays, each of shape (...) as in one world.
        world: The world of `model` from which the parameters that `values` lacks are taken.
        records: Whether values are written to records; otherwise every value that differs from the records is stored in
            a field.
        start: Fields of the initial state by name, each of shape (...) as in one world; None for the state at rest.
    """
    own = {name: model.parameter(name).numpy()[world] for name in model.parameters()}
    new = {name: v for name, v in values.items() if not _equal(v, own[name])}
    scene = model.recorded(new) if records else model.scene
    with warnings.catch_warnings(action="ignore"):  # issued when `model` was built
        built = solver.build(scene, 1, model.device)
    specs, wanted = built.parameters(), own | dict(values)
    fields = []
    for name, spec in specs.items():
        recorded, value = built.parameter(name).numpy()[0], wanted.get(name)
        if value is not None and not _equal(value, recorded):
            places = _vertices(built, spec.per)
            fields.append(Field(name, value, places, recorded if places is None else None))
    rest = at_rest(solver, built)
    return dataclasses.replace(scene, fields=[*fields, *state_fields(start or {}, rest)])


def at_rest(solver: Solver, model: Model) -> dict[str, np.ndarray]:
    """Fields of the state at rest by name, each of shape (...) as in one world."""
    state = solver.state(model)
    return {f.name: getattr(state, f.name).numpy()[0] for f in dataclasses.fields(state)}


def with_fields(model: Model, fields: Iterable[Field], who: str) -> Model:
    """A copy of `model` with the parameters that the fields of a scene hold.

    Args:
        model: Result of `Solver.build` for the scene without its fields, so that solvers need not know fields.
        fields: The fields of the scene.
        who: Name of the solver, for messages.

    Raises:
        SceneError: The model has no such parameter; records of the scene have changed since the field was made; or the
            field belongs to other elements, and its values cannot be interpolated.
    """
    arrays, specs = {}, model.parameters()
    for field in fields:
        if field.name not in specs:
            raise SceneError(
                f"Field {field.name!r}: {who} has no such parameter for this scene, but {', '.join(specs)}; leave it "
                f"out of Scene.fields"
            )
        own, spec = model.parameter(field.name), specs[field.name]
        values, error = _values(field, spec, own.numpy()[0], model, who)
        if error is not None:
            warn_user(
                f"Field {field.name!r}: {who} has {len(values)} elements instead of the {len(field.values)} that it "
                f"was designed for; values between their centres differ by {100.0 * error:.2g} % (root mean square) "
                f"from those of the design where they are interpolated back"
            )
        arrays[field.name] = tiled(values, model.worlds, model.device, own.dtype)
    return model.with_parameters(arrays) if arrays else model


def _vertices(model: Model, per: str) -> np.ndarray | None:
    """Vertices of elements of soft bodies at rest [m], shape (n, k, dim); None for all other elements.

    If an element has fewer than k vertices, its centre fills the missing entries.
    """
    places = model.places(per)
    if places is None or not len(places) or not isinstance(model.scene.bodies[places.body[0]], SoftBody):
        return None
    return np.where(np.isnan(places.vertices), places.center[:, None], places.vertices)


def _equal(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays of one type are equal to the last bit."""
    return a.shape == b.shape and a.tobytes() == b.tobytes()


def _values(field: Field, spec: Parameter, own: np.ndarray, model: Model, who: str) -> tuple[np.ndarray, float | None]:
    """Values of a field for the elements of a model.

    Args:
        field: The field.
        spec: The parameter that the field holds.
        own: Values of this parameter in the model.
        model: The model.
        who: Name of the solver, for messages.

    Returns:
        The values, and the error of their interpolation; None for the error if nothing was interpolated.
    """
    places = _vertices(model, spec.per)
    if (places is None) != (field.places is None):
        words = ("elements", "none") if places is None else ("no elements", "some")
        raise SceneError(
            f"Field {field.name!r}: it belongs to {words[0]}, and the parameter of {who} to {words[1]} (one per "
            f"{spec.per}); leave it out of Scene.fields"
        )
    if places is None:
        _refuse_changed(field, own)
        return field.values, None
    if field.values.shape[1:] != own.shape[1:]:
        raise SceneError(
            f"Field {field.name!r}: an element has a value of shape {field.values.shape[1:]}, and {who} needs one of "
            f"shape {own.shape[1:]}; leave it out of Scene.fields"
        )
    if places.shape == field.places.shape and np.allclose(places, field.places, rtol=0.0, atol=_SAME * np.ptp(places)):
        return field.values, None
    if not spec.intensive:
        raise SceneError(
            f"Field {field.name!r}: it was designed for another mesh, of {len(field.places)} elements, and {who} has "
            f"{len(places)} here; {spec.doc} [{spec.unit}] depends on the elements and cannot be carried over: use the "
            f"solver and the resolution that it was designed with, or leave it out of Scene.fields"
        )
    return resampled(field, places, model.places(spec.per).body, model.scene)


def _refuse_changed(field: Field, own: np.ndarray) -> None:
    """Raise if records of the scene have changed since the field was made; `own` has the values from the records."""
    scale = np.abs(field.recorded).max(initial=0.0)
    if own.shape != field.recorded.shape or not np.allclose(own, field.recorded, rtol=_AGREE, atol=_AGREE * scale):
        raise SceneError(
            f"Field {field.name!r}: it was baked into other records of this scene, which have changed since; bake it "
            f"again (Simulation.scene_with), or leave it out of Scene.fields"
        )
