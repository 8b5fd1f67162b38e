"""Constituents that a composite material has in addition to its matrix: fibres and Maxwell branches."""

from collections.abc import Sequence

from warpbots.scene.record import SceneError, direction, record

__all__ = ["FibreReinforcement", "MaxwellBranch"]


@record
class FibreReinforcement:
    """A family of parallel fibres in a matrix, such as threads in silicone; fibres resist stretch and buckle freely.

    A fibre that is stretched by the factor L > 1 adds the nominal stress `modulus` times (L - 1) in the direction of
    the fibre; a shortened fibre adds no stress. Two families at opposite angles to an axis describe the winding of a
    fibre-reinforced actuator.

    Attributes:
        direction: Direction of the fibres at rest, shape (dim,), normalised on construction.
        modulus: Stiffness of the fibres per cross-section of the whole material [Pa], not negative: Young's modulus of
            a fibre times the fraction of the volume that fibres fill. Young's modulus of a bar that is pulled along the
            fibres is nearly Young's modulus of the matrix plus `modulus`.

    Raises:
        SceneError: A value is out of range.
    """

    direction: Sequence[float]
    modulus: float

    def __post_init__(self):
        object.__setattr__(self, "direction", direction(self.direction, "FibreReinforcement: direction"))
        if self.modulus < 0.0:
            raise SceneError(
                f"FibreReinforcement: modulus must be >= 0 [Pa], got {self.modulus:g}; cotton threads that fill a "
                f"hundredth of the volume have about 5e7"
            )


@record
class MaxwellBranch:
    """A spring and a dashpot in series, parallel to the elasticity of a material, so that part of the stress relaxes.

    A single branch parallel to a solid is the standard linear solid. Several branches are a generalised Maxwell solid
    (a Prony series). A branch parallel to the law ``weakly_compressible``, which has no shear stiffness, is a Maxwell
    fluid. The stress of a branch is deviatoric: the volume of matter stays elastic.

    Attributes:
        shear_modulus: Shear modulus of the spring [Pa], not negative. The constants of the material describe slow
            loading; under fast loading the shear moduli of all branches add to the shear modulus of the material.
        relaxation_time: Time in which the stress of the branch falls to 1/e at constant strain [s], positive: the
            viscosity of the dashpot divided by the shear modulus of the spring.

    Raises:
        SceneError: A value is out of range.
    """

    shear_modulus: float
    relaxation_time: float

    def __post_init__(self):
        if self.shear_modulus < 0.0:
            raise SceneError(f"MaxwellBranch: shear_modulus must be >= 0 [Pa], got {self.shear_modulus:g}")
        if self.relaxation_time <= 0.0:
            raise SceneError(
                f"MaxwellBranch: relaxation_time must be positive [s], got {self.relaxation_time:g}; for a stress in "
                f"proportion to the rate of strain use Material(damping=...)"
            )
