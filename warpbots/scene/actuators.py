"""Actuators: effects of a control signal in [-1, 1] on a body, as data; `warpbots.actuation_laws` has the forces."""

import inspect
from collections.abc import Sequence

from warpbots.scene.actuator_checks import SIGN, STIFFNESS, normalize_direction, require_positive, require_strain
from warpbots.scene.record import SceneError, point, record

__all__ = [
    "Actuator",
    "Cable",
    "Cavity",
    "DielectricElastomer",
    "Expansion",
    "Fibre",
    "Motor",
    "Muscle",
    "Oscillation",
    "PneumaticCell",
    "Pressure",
    "StressActuator",
]

_ATMOSPHERE = 101325.0
"""Standard atmosphere [Pa]."""


@record
class StressActuator:
    """Base of `Pressure`, `Muscle` and `DielectricElastomer`: actuators that add a stress to the matter of a region.

    The stress may be any smooth function of the control signal and of the deformation gradient. To add a stress
    actuator, derive a dataclass from this class, and register its law with `warpbots.actuation_laws.stress_law`.

    Attributes:
        name: Name of the actuator; its control channel carries this name.
        region: Name of the region that the actuator drives.

    Raises:
        SceneError: A derived class has fields, but is not decorated as a dataclass.
    """

    name: str
    region: str

    def __new__(cls, *values: object, **named: object):
        """Refuse a class whose fields would be lost."""
        lost = [field for field in inspect.get_annotations(cls) if field not in cls.__dataclass_fields__]
        if lost:
            raise SceneError(
                f"{cls.__name__}: the class has fields ({', '.join(lost)}), but is no dataclass; write "
                f"@dataclasses.dataclass(frozen=True) above it"
            )
        return super().__new__(cls)


@record
class Pressure(StressActuator):
    """An isotropic active stress in the solid matter of a region; the matter swells for u > 0.

    The actuator adds -u max_pressure F F^T to the Kirchhoff stress tau, with the control signal u and the deformation
    gradient F (ChainQueen eq. 15, read as the Kirchhoff term of its eq. A69). For a chamber of air use `Cavity`.

    Attributes:
        name: Name of the actuator; its control channel carries this name.
        region: Name of the region that the actuator inflates.
        max_pressure: Pressure at u = 1 [Pa], positive.
    """

    max_pressure: float

    def __post_init__(self):
        require_positive(self, "max_pressure", "Pa", SIGN)


@record
class Muscle(StressActuator):
    """A stress along one material direction; a control signal u > 0 contracts the region, u < 0 stretches it.

    The actuator adds u max_stress (F n)(F n)^T to the Kirchhoff stress tau, with the deformation gradient F and the
    unit `direction` n in the undeformed body (ChainQueen eq. 15 with a single axis).

    Attributes:
        name: Name of the actuator; its control channel carries this name.
        region: Name of the region that the actuator drives.
        direction: Direction in the undeformed body, shape (dim,); normalised on construction.
        max_stress: Stress at u = 1 [Pa], positive.
    """

    direction: Sequence[float]
    max_stress: float

    def __post_init__(self):
        normalize_direction(self)
        require_positive(self, "max_stress", "Pa", SIGN)


@record
class DielectricElastomer(StressActuator):
    """A soft dielectric between compliant electrodes: a voltage makes it thinner, and wider across.

    The electrodes lie across the unit `direction` N in the undeformed body and deform with it, so that the field is E =
    u max_field F^-T N, with the control signal u and the deformation gradient F: at a given voltage the field grows as
    the layer becomes thinner. The actuator adds Maxwell's stress

        tau = J eps (E E^T - |E|^2/2 I),   eps = 8.854e-12 F/m relative_permittivity,   J = det F

    of an ideal dielectric (Suo 2010, "Theory of dielectric elastomers"). Incompressible matter is deformed as if the
    pressure eps |E|^2 acted on the electrodes (Pelrine, Kornbluh and Joseph 1998). The stress is quadratic in the
    voltage: both signs of u act alike, and at u = 0 the derivative with respect to u is zero.

    Above a certain voltage there is no equilibrium: the layer thins until it breaks down (pull-in). Steps then fail. In
    a layer of neo-Hookean matter that is free to widen, the largest eps (max_field)^2 is about 0.47 of its shear
    modulus.

    Attributes:
        name: Name of the actuator; its control channel carries this name.
        region: Name of the region of dielectric.
        direction: Normal of the electrodes in the undeformed body, shape (dim,); normalised on construction.
        max_field: Voltage at u = 1 over the undeformed thickness of a layer between electrodes [V/m], positive.
        relative_permittivity: Permittivity relative to the vacuum [1], at least 1; about 3 for silicone, 4.7 for
            acrylic tape.
    """

    direction: Sequence[float]
    max_field: float
    relative_permittivity: float

    def __post_init__(self):
        normalize_direction(self)
        require_positive(self, "max_field", "V/m", "both signs of the control act alike")
        if self.relative_permittivity < 1.0:
            raise SceneError(
                f"DielectricElastomer {self.name!r}: relative_permittivity must be at least 1, the vacuum's [1], got "
                f"{self.relative_permittivity:g}; silicone has about 3"
            )


@record
class Fibre:
    """Elastic fibres of variable length through a region, which form a muscle with its own stiffness.

    The fibres add k/2 (l - L)^2 to the energy per undeformed volume, with the stretch l = |F n| for the deformation
    gradient F and the unit `direction` n in the undeformed body, and L = 1 - u max_contraction (muscles of the soft
    multi-body paper, appendix D). At u = 0 the fibres are at rest in the undeformed body, and stiffen the body along
    their direction; for u < 0 the fibres lengthen. The stress of a `Muscle`, in contrast, does not depend on the
    length.

    Attributes:
        name: Name of the actuator; its control channel carries this name.
        region: Name of the region that the fibres run through.
        direction: Direction in the undeformed body, shape (dim,); normalised on construction.
        stiffness: Stiffness k of the fibres [Pa], positive.
        max_contraction: Fraction of its length that a fibre loses at u = 1 [1], in (0, 1).
    """

    name: str
    region: str
    direction: Sequence[float]
    stiffness: float
    max_contraction: float

    def __post_init__(self):
        normalize_direction(self)
        require_positive(self, "stiffness", "Pa", STIFFNESS)
        require_strain(self, "max_contraction")


@record
class PneumaticCell:
    """Pneumatic cells that prescribe the volume of the matter in a region, one cell at each integration point.

    The cells add k/2 |F - R|^2 to the energy per undeformed volume. R is, among all matrices with det R = 1 + u
    max_expansion, the matrix nearest to the deformation gradient F (pneumatic actuators of the soft multi-body paper,
    eq. 39 and 40). A linear tetrahedron has one integration point and so is one cell; a quadratic tetrahedron has four
    integration points, and a hexahedron has eight. Cells are at rest in the undeformed body at u = 0, and resist a
    change of volume. The stress of a `Pressure`, in contrast, does not depend on the volume.

    A cell that is to expand also resists changes of shape; a cell that is to shrink gives way to them. With equal
    stretches and rho^3 = det R / det F, its stiffness against them is k (rho - 1) / (2 rho - 1), added to 2 mu of the
    matter. Where the sum is negative, each cell flattens in a direction of its own, and a body has many equilibria.
    Below a seventh of the present volume R jumps from one direction to another, and a step may find no end. So keep
    signals of strong cells with a large `max_expansion` at or above 0.

    Attributes:
        name: Name of the actuator; its control channel carries this name.
        region: Name of the region that the cells fill.
        stiffness: Stiffness k of the cells [Pa], positive.
        max_expansion: Fraction of its volume that a cell gains at u = 1 and loses at u = -1 [1], in (0, 1).
    """

    name: str
    region: str
    stiffness: float
    max_expansion: float

    def __post_init__(self):
        require_positive(self, "stiffness", "Pa", STIFFNESS)
        require_strain(self, "max_expansion", "volume")


@record
class Cavity:
    """A chamber of air in a soft body; its pressure acts normal to the deformed walls.

    The chamber is the void that is enclosed by the only closed surface within `region`. This surface consists of all
    faces of solids and sheets whose vertices lie in the shape of the region; together the faces have no open edge. The
    shape of the region may contain the void and some matter around the void, or a whole hollow body: the outer surface
    of the body does not count.

    The gauge pressure p, the pressure inside minus the pressure outside, is either given,

        p = u max_pressure,

    or it follows from the amount n R T of gas at constant temperature in the volume V of the chamber,

        p = n R T / V - ambient_pressure,   n R T = ambient_pressure V_0 max_gas_ratio^u.

    At u = 0 the gas fills the undeformed chamber of volume V_0 at ambient pressure.

    Only `ProjectiveDynamics` has chambers. Its page in the documentation shows how to make a hollow body.

    Attributes:
        name: Name of the actuator; its control channel carries this name.
        region: Name of the region around the chamber.
        max_pressure: Gauge pressure at u = 1 [Pa], positive, or None if the amount of gas is given instead.
        max_gas_ratio: Amount of gas at u = 1 divided by the amount at u = 0 [1], at least 1; with the ratio r, the
            amount at u = -1 is smaller by the factor 1/r. 1 for a sealed chamber; None if the pressure is given
            instead.
        ambient_pressure: Absolute pressure outside of bodies [Pa], positive; used only if the amount of gas is given.

    Raises:
        SceneError: Both or neither of `max_pressure` and `max_gas_ratio` are given, or a value is out of range.
    """

    name: str
    region: str
    max_pressure: float | None = None
    max_gas_ratio: float | None = None
    ambient_pressure: float = _ATMOSPHERE

    def __post_init__(self):
        if (self.max_pressure is None) == (self.max_gas_ratio is None):
            raise SceneError(
                f"Cavity {self.name!r}: it needs either max_pressure [Pa], for a given pressure, or max_gas_ratio, for "
                f"a given amount of gas, got {'neither' if self.max_pressure is None else 'both'}"
            )
        if self.max_pressure is not None:
            require_positive(self, "max_pressure", "Pa", SIGN)
        elif self.max_gas_ratio < 1.0:
            raise SceneError(
                f"Cavity {self.name!r}: max_gas_ratio must be at least 1, got {self.max_gas_ratio:g}; u < 0 removes gas"
            )
        if self.ambient_pressure <= 0.0:
            raise SceneError(
                f"Cavity {self.name!r}: ambient_pressure is an absolute pressure and must be positive [Pa], got "
                f"{self.ambient_pressure:g}"
            )


@record
class Cable:
    """An elastic cable threaded through a body, which pulls and never pushes.

    With the waypoints p_i, the energy of the cable is k/2 max(0, sum |p_i - p_{i+1}| - R (1 - u))^2. This is the cable
    of ChainQueen eq. 17 with the free length R (1 - u) instead of R u. The cable is at rest for u = 0, like every other
    actuator. For u = 1 the free length is zero, and for u = -1 the free length is 2 R.

    Attributes:
        name: Name of the actuator; its control channel carries this name.
        waypoints: Points through which the cable runs [m], shape (n, dim), n >= 2; each waypoint is tied to the nearest
            particle of the undeformed scene.
        stiffness: Spring constant k of the whole cable [N/m], positive.
        rest_length: Free length R of the cable at u = 0 [m]; None for the length of the undeformed route.
    """

    name: str
    waypoints: Sequence[Sequence[float]]
    stiffness: float
    rest_length: float | None = None

    def __post_init__(self):
        route = self.waypoints
        if len(route) < 2 or {len(w) for w in route} not in ({2}, {3}):
            raise SceneError(f"Cable {self.name!r}: waypoints must be at least two points of one space, got {route}")
        if any(a == b for a, b in zip(route, route[1:], strict=False)):
            raise SceneError(f"Cable {self.name!r}: two waypoints in a row coincide; the cable has no direction there")
        require_positive(self, "stiffness", "N/m", STIFFNESS)
        if self.rest_length is not None:
            require_positive(self, "rest_length", "m", "None is the length of the undeformed route")


@record
class Expansion:
    """Expansion of the matter of a region for u > 0, shrinking for u < 0: a rest length L becomes (1 + u max_strain) L.

    Attributes:
        name: Name of the actuator; its control channel carries this name.
        region: Name of the region whose rest lengths change.
        max_strain: Strain at u = 1 [1], in (0, 1).
        direction: Direction in the undeformed body along which the matter expands, shape (dim,), normalised on
            construction; None for an equal expansion in all directions.
    """

    name: str
    region: str
    max_strain: float
    direction: Sequence[float] | None = None

    def __post_init__(self):
        require_strain(self, "max_strain")
        if self.direction is not None:
            normalize_direction(self)


@record
class Oscillation:
    """Oscillation of the matter of a region by itself: a rest length L becomes (1 + e) L.

    The strain is

        e = (1 + u) amplitude sin(2 pi frequency t + phase - wave . X)

    with the time t and the rest position X. The strain has the nominal amplitude for u = 0, is zero for u = -1, and has
    twice the nominal amplitude for u = 1.

    Attributes:
        name: Name of the actuator; its control channel carries this name.
        region: Name of the region whose rest lengths change.
        amplitude: Largest strain at u = 0 [1], in (0, 1).
        frequency: Frequency of the oscillation [Hz], positive.
        phase: Phase at time 0 and X = 0 [rad].
        direction: Direction in the undeformed body along which the matter oscillates, shape (dim,), normalised on
            construction; None for an equal strain in all directions.
        wave: Wave vector [rad/m], shape (dim,): a wave of length 2 pi / |wave| travels along this vector; None if the
            whole region oscillates in phase.
    """

    name: str
    region: str
    amplitude: float
    frequency: float
    phase: float = 0.0
    direction: Sequence[float] | None = None
    wave: Sequence[float] | None = None

    def __post_init__(self):
        require_strain(self, "amplitude", below="a phase that is greater by pi turns it over")
        require_positive(
            self, "frequency", "Hz", "the opposite wave vector turns a wave round, and what stays is an Expansion"
        )
        if self.direction is not None:
            normalize_direction(self)
        if self.wave is not None:
            object.__setattr__(self, "wave", point(self.wave, f"Oscillation {self.name!r}: wave"))


@record
class Motor:
    """A motor at an attachment, which exerts equal and opposite torques on a rotor and on a stator.

    The torque on the rotor is

        T = max_torque (u - w / max_speed)

    with w the angular velocity of the rotor relative to the stator. This is the law of a direct-current motor: u
    corresponds to the voltage, and the speed without a load is u max_speed. In 3D the axis runs from the first to the
    second point of the attachment, and a positive torque turns the rotor about the axis by the right-hand rule; in 2D a
    positive torque turns the rotor from x to y.

    Attributes:
        name: Name of the actuator; its control channel carries this name.
        attachment: Name of the attachment about which the rotor turns; in 3D the attachment must have two points.
        rotor: Name of the region on which the torque acts.
        stator: Name of the region on which the opposite torque acts.
        max_torque: Torque at u = 1 and standstill [N m], positive.
        max_speed: Angular velocity of the rotor relative to the stator at u = 1 without a load [rad/s], positive.
    """

    name: str
    attachment: str
    rotor: str
    stator: str
    max_torque: float
    max_speed: float

    def __post_init__(self):
        require_positive(self, "max_torque", "N m", SIGN)
        require_positive(self, "max_speed", "rad/s", SIGN)


Actuator = StressActuator | Fibre | PneumaticCell | Cavity | Cable | Expansion | Oscillation | Motor
"""Any of the actuators of this module, and stress actuators of users."""
