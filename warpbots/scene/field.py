"""Parameters of a solver that no other record of a scene can hold, such as the stiffness of every element."""

import numpy as np

from warpbots.scene.record import SceneError, record
from warpbots.scene.shapes.field_checks import assign

__all__ = ["Field"]


@record
class Field:
    """Values of a parameter of a solver's model, for example after training (`warpbots.Simulation.scene_with`).

    Exactly one of `places` and `recorded` is given; it identifies the elements, joints or motors to which the values
    belong.

    Attributes:
        name: Name of the parameter, such as ``"youngs_modulus"``; unique in the scene.
        values: Values of the parameter in SI units, one for each element, joint, motor, ..., shape (n, ...).
        places: Vertices of the elements at rest [m], shape (n, k, dim). A model with the same elements gets `values` to
            the last bit; a model with other elements gets values that are interpolated between the centres of the
            elements given here.
        recorded: For parameters without a place, such as parameters of joints: the values that the other records of the
            scene give to this parameter, with the shape of `values`. The field applies only as long as the other
            records give these values.

    Raises:
        SceneError: A number is not finite, shapes do not fit, or neither or both of `places` and `recorded` are given.
    """

    name: str
    values: np.ndarray
    places: np.ndarray | None = None
    recorded: np.ndarray | None = None

    def __post_init__(self):
        what = f"Field {self.name!r}"
        if (self.places is None) == (self.recorded is None):
            raise SceneError(f"{what}: it needs either places, for elements, or recorded, for all else")
        values = _frozen(self.values)
        assign(self, values=values)
        if self.recorded is not None:
            assign(self, recorded=_frozen(self.recorded))
            if self.recorded.shape != values.shape:
                raise SceneError(
                    f"{what}: values and recorded must have one shape, got {values.shape} and {self.recorded.shape}"
                )
            return
        assign(self, places=_frozen(self.places))
        if self.places.ndim != 3 or values.ndim < 1 or len(values) != len(self.places) or not len(values):
            raise SceneError(
                f"{what}: places must have shape (n, vertices, dim), with n >= 1 as many as values; got places of "
                f"shape {self.places.shape} and values of shape {values.shape}"
            )

    @property
    def centers(self) -> np.ndarray | None:
        """Centre of each element at rest [m], shape (n, dim); None if the field has no places."""
        return None if self.places is None else self.places.mean(axis=1)


def _frozen(values: np.ndarray) -> np.ndarray:
    """A read-only copy of an array in double precision."""
    array = np.array(values, dtype=np.float64)
    array.flags.writeable = False
    return array
