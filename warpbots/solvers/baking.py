"""Parameters of a model baked into its scene, and the fields of a scene as parameters of a model.

Values go where the records of a scene hold them, so that readers and other solvers find them. A model built from these
records then shows what they do not say to the last bit, and this goes into fields.
"""

import dataclasses
import warnings
from collections.abc import Iterable, Mapping

import numpy as np

from warpbots.scene import Field, Scene, SceneError, SoftBody
from warpbots.solvers.device_arrays import tiled
from warpbots.solvers.initial_state import state_fields
from warpbots.solvers.resampling import resampled
from warpbots.solvers.solver import Model, Parameter, Solver
from warpbots.user_warning import warn_user

__all__ = ["at_rest", "baked", "with_fields"]

_SAME = 1e-9
"""Part of the size of all elements by which vertices may differ, which rounding moves on other machines."""

_AGREE = 1e-6
"""The same of values of records."""


def baked(
    solver: Solver, model: Model, values: Mapping[str, np.ndarray], world: int = 0, records: bool = True,
    start: Mapping[str, np.ndarray] | None = None,
) -> Scene:  # fmt: skip
    """The scene of `model` with parameters in it.

    Args:
        solver: What built the model.
        model: Has the scene, without fields, and parameters that are not in `values`.
        values: Parameters by name, in the type of the model's arrays, each of shape (...) as in one world.
        world: The world whose parameters are taken where `values` has none.
        records: Whether values go into records; otherwise all that differs from these goes into fields.
        start: The state to begin from, by name, each of shape (...) as in one world; None for rest.
    """
    own = {name: model.parameter(name).numpy()[world] for name in model.parameters()}
    new = {name: v for name, v in values.items() if not _equal(v, own[name])}
    scene = model.recorded(new) if records else model.scene
    with warnings.catch_warnings(action="ignore"):  # said when `model` was built
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
    """The state at rest by name, each of shape (...) as in one world."""
    state = solver.state(model)
    return {f.name: getattr(state, f.name).numpy()[0] for f in dataclasses.fields(state)}


def with_fields(model: Model, fields: Iterable[Field], who: str) -> Model:
    """A copy of `model` whose parameters are those of the fields of a scene.

    Args:
        model: From `Solver.build` of that scene without its fields, of which solvers need to know nothing.
        fields: The fields.
        who: Name of the solver, for messages.

    Raises:
        SceneError: The model has no such parameter, its records have changed, or its elements are others, to which the
            values cannot be carried over.
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
    """Vertices of elements of soft bodies at rest [m], shape (n, k, dim); None for all else.

    Where an element has fewer of them than others of its kind, its centre stands for the missing ones.
    """
    places = model.places(per)
    if places is None or not len(places) or not isinstance(model.scene.bodies[places.body[0]], SoftBody):
        return None
    return np.where(np.isnan(places.vertices), places.center[:, None], places.vertices)


def _equal(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays of one type are equal to the last bit."""
    return a.shape == b.shape and a.tobytes() == b.tobytes()


def _values(field: Field, spec: Parameter, own: np.ndarray, model: Model, who: str) -> tuple[np.ndarray, float | None]:
    """Values of a field for the elements of a model, and the error of interpolation; None where there is none."""
    places = _vertices(model, spec.per)
    if (places is None) != (field.places is None):
        words = ("elements", "none") if places is None else ("no elements", "some")
        raise SceneError(
            f"Field {field.name!r}: it belongs to {words[0]}, and that of {who} to {words[1]} (one per {spec.per}); "
            f"leave it out of Scene.fields"
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
    """Raise if the records of a scene no longer say what they did when a field was baked."""
    scale = np.abs(field.recorded).max(initial=0.0)
    if own.shape != field.recorded.shape or not np.allclose(own, field.recorded, rtol=_AGREE, atol=_AGREE * scale):
        raise SceneError(
            f"Field {field.name!r}: it was baked into other records of this scene, which have changed since; bake it "
            f"again (Simulation.scene_with), or leave it out of Scene.fields"
        )
