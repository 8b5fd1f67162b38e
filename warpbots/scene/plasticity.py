"""Plasticity: the behaviour of MPM materials beyond their elastic range."""

from warpbots.scene.record import SceneError, record

__all__ = ["CamClay", "DruckerPrager", "Plasticity", "VonMises"]


@record
class VonMises:
    """Plasticity of ductile matter, such as metal or clay, which flows at a shear stress independent of pressure.

    The equivalent stress sqrt(3/2) |dev tau| of the Kirchhoff stress tau never exceeds `yield_stress` plus `hardening`
    times the accumulated plastic strain. The volume is elastic. In 2D the flow stays in the plane and dev tau is the
    deviator of the in-plane stress. This agrees with plane strain if flow has developed or the matter is nearly
    incompressible.

    Attributes:
        yield_stress: Stress at which a bar that is pulled begins to flow [Pa], positive.
        hardening: Hardening modulus [Pa]: growth of the yield stress per plastic strain; 0 for none. A bar that is
            pulled has the tangent modulus E H / (E + H) beyond its yield stress.

    Raises:
        SceneError: A value is out of range.
    """

    yield_stress: float
    hardening: float = 0.0

    def __post_init__(self):
        if self.yield_stress <= 0.0:
            raise SceneError(
                f"VonMises: yield_stress must be positive [Pa], got {self.yield_stress:g}; modelling clay has about "
                f"5e3, and matter that never yields has no plasticity"
            )
        if self.hardening < 0.0:
            raise SceneError(
                f"VonMises: hardening must be a modulus >= 0 [Pa], got {self.hardening:g}; matter that softens has no "
                f"solution that is independent of the grid"
            )


@record
class DruckerPrager:
    """Plasticity of granular matter, such as sand: grains under pressure resist shear by friction, and separate freely.

    The Kirchhoff stress obeys the Mohr-Coulomb law in 2D. In 3D the yield surface is a cone that agrees with this law
    in triaxial compression. Shear does not change the volume; separated grains resist again once they are as close as
    before. There is no cohesion. Because the flow keeps the volume, sand slides along a plane with the friction
    coefficient sin(friction_angle) (Davis 1968): a layer slides down a slope steeper than the arctangent of this
    coefficient, and a heap slumps when its flanks are steeper than the friction angle.

    Attributes:
        friction_angle: Angle of internal friction [degrees], in (0, 90); dry sand has 30 to 35.

    Raises:
        SceneError: The angle is out of range.
    """

    friction_angle: float

    def __post_init__(self):
        if not 0.0 < self.friction_angle < 90.0:
            raise SceneError(
                f"DruckerPrager: friction_angle must be in (0, 90) degrees, got {self.friction_angle:g}; dry sand has "
                f"30 to 35"
            )


@record
class CamClay:
    """Plasticity of snow or porous soil, which hardens as it compacts under pressure, and breaks as it dilates.

    This is the modified Cam clay model with cohesion (Roscoe & Burland 1968; for snow Gaume et al. 2018). Stress stays
    within an ellipse in the plane of pressure p and equivalent stress q, from the tensile strength `cohesion` p_c to
    the preconsolidation pressure p_c. Flow at high pressure compacts matter and raises p_c; flow at low pressure
    loosens matter until it falls apart. On the line q = `stress_ratio` (p + `cohesion` p_c) matter shears at constant
    volume. Stress here is the Kirchhoff stress, which is J times the Cauchy stress, with J the volume relative to the
    volume at rest.

    Attributes:
        preconsolidation_pressure: Initial value of p_c, the pressure at which matter begins to compact [Pa], positive.
        stress_ratio: Slope M of the critical state line [1], positive; 6 sin(phi) / (3 - sin(phi)) for a friction angle
            phi in triaxial compression.
        cohesion: Tensile strength divided by the preconsolidation pressure [1], not negative.
        hardening_coefficient: Growth of ln p_c per logarithmic strain of compaction [1], not negative.

    Raises:
        SceneError: A value is out of range.
    """

    preconsolidation_pressure: float
    stress_ratio: float = 1.2
    cohesion: float = 0.3
    hardening_coefficient: float = 10.0

    def __post_init__(self):
        if self.preconsolidation_pressure <= 0.0:
            raise SceneError(
                f"CamClay: preconsolidation_pressure must be positive [Pa], got {self.preconsolidation_pressure:g}; "
                f"fresh snow has about 1e3, a settled slab 1e4"
            )
        if self.stress_ratio <= 0.0:
            raise SceneError(
                f"CamClay: stress_ratio must be positive, got {self.stress_ratio:g}; a friction angle of 30 degrees "
                f"has 1.2"
            )
        if self.cohesion < 0.0:
            raise SceneError(
                f"CamClay: cohesion must be a ratio >= 0, got {self.cohesion:g}; snow has about 0.3, matter without "
                f"tensile strength 0"
            )
        if self.hardening_coefficient < 0.0:
            raise SceneError(
                f"CamClay: hardening_coefficient must be >= 0, got {self.hardening_coefficient:g}; matter that softens "
                f"as it is compacted has no solution that is independent of the grid"
            )


Plasticity = VonMises | DruckerPrager | CamClay
"""Any of the models of plastic flow."""
