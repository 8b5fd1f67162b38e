"""Materials in engineering units."""

from collections.abc import Mapping, Sequence

from warpbots.scene.constituents import FibreReinforcement, MaxwellBranch
from warpbots.scene.plasticity import Plasticity, VonMises
from warpbots.scene.record import SceneError, record

__all__ = ["Material"]

_LARGEST = 32
"""Largest exponent p. With larger ones (J - 1)^p has no effect: at half the volume it is 2^-p, below rounding."""


@record
class Material:
    """A homogeneous hyperelastic material, with optional fibres, Maxwell branches, plastic flow and damping.

    Attributes:
        youngs_modulus: Young's modulus E [Pa], positive.
        poissons_ratio: Poisson's ratio nu, in (-1, 0.5).
        density: Mass density rho [kg/m^3] ([kg/m^2] in 2D), positive.
        law: Name of the constitutive law, a key of `warpbots.materials.LAWS`: ``neo_hookean``, ``fixed_corotated``,
            ``corotated``, ``linear``, ``st_venant_kirchhoff``, ``hencky``, ``mooney_rivlin``, ``ogden``, ``gent``, or
            a law of your own; ``weakly_compressible`` for a fluid, with `MPM` only, whose bulk modulus is E for nu =
            1/3.
        incompressibility: Exponent p of the added volumetric energy K (J - 1)^p with K = E / (3 (1 - 2 nu)) (Bonet &
            Wood 1997; ChainQueen eq. 14 with its factor corrected); an even number, or 0 for no added energy. A larger
            exponent does not make the material stiffer near J = 1: 2 is the usual choice.
        damping: Time constant beta of Kelvin-Voigt damping [s]: the viscous stress is beta times the elastic stress
            that the strain rate would cause as a strain; 0 for no damping.
        yield_strain: Strain beyond which the material deforms plastically [1]; None if the material never yields.
        breaking_strain: Strain at which the material breaks permanently [1]; None if the material never breaks.
        plasticity: Model of plastic flow, with `MPM` only: `VonMises`, `DruckerPrager` or `CamClay`, each with the law
            ``hencky``; None for matter that does not flow.
        fibres: Families of fibres that reinforce the material, with `MPM` only.
        branches: Maxwell branches, whose stress relaxes, with `MPM` only.
        constants: Constants of the law besides E and nu by name, in the SI units that the law declares: of ``gent``
            ``locking_invariant``, of ``mooney_rivlin`` ``second_invariant_share``, of ``ogden`` ``exponent`` and, if
            there is a second term, ``second_exponent`` and ``second_share``. A solver raises a `SceneError` before
            anything runs if one is unknown, missing, or outside its range. Other laws of this package have none.

    Raises:
        SceneError: A value is out of range.
    """

    youngs_modulus: float
    poissons_ratio: float = 0.3
    density: float = 1000.0
    law: str = "neo_hookean"
    incompressibility: int = 0
    damping: float = 0.0
    yield_strain: float | None = None
    breaking_strain: float | None = None
    plasticity: Plasticity | None = None
    fibres: Sequence[FibreReinforcement] = ()
    branches: Sequence[MaxwellBranch] = ()
    constants: Mapping[str, float] | None = None

    def __post_init__(self):
        object.__setattr__(self, "constants", self.constants or {})
        E, nu, rho, p = self.youngs_modulus, self.poissons_ratio, self.density, self.incompressibility
        if E <= 0.0:
            raise SceneError(
                f"Material: youngs_modulus must be positive [Pa], got {E:g}; soft silicone is near 5e4, rubber near 1e6"
            )
        if not -1.0 < nu < 0.5:
            raise SceneError(
                f"Material: poissons_ratio must be in (-1, 0.5), got {nu:g}; for a nearly incompressible material use "
                f"0.45 to 0.48, or incompressibility=2"
            )
        if rho <= 0.0:
            raise SceneError(f"Material: density must be positive [kg/m^3], got {rho:g}; silicone has about 1070")
        if not 0 <= p <= _LARGEST or p % 2:
            raise SceneError(
                f"Material: incompressibility must be an even exponent (2, 4, ..., {_LARGEST}) or 0 for none, got "
                f"{p:.6g}; an odd exponent pushes the wrong way in compression, and a larger one has no effect"
            )
        if self.damping < 0.0:
            raise SceneError(f"Material: damping must be a time >= 0 [s], got {self.damping:g}; rubber has about 1e-4")
        for field in ("yield_strain", "breaking_strain"):
            strain = getattr(self, field)
            if strain is not None and strain <= 0.0:
                raise SceneError(f"Material: {field} must be positive, or None for never, got {strain:g}")
        if self.plasticity is not None and self.law != "hencky":
            raise SceneError(
                f"Material: plasticity={type(self.plasticity).__name__}(...) is an equation of logarithmic strains, "
                f"got law={self.law!r}; use law='hencky'"
            )
        if self.plasticity is not None and self.fibres:
            raise SceneError(
                f"Material: fibres feel the stretch since rest, which plasticity={type(self.plasticity).__name__}(...) "
                f"forgets; leave out one of them"
            )
        if self.plasticity is not None and not isinstance(self.plasticity, VonMises) and p:
            raise SceneError(
                f"Material: yielding by {type(self.plasticity).__name__} follows from the pressure of the law alone, "
                f"got incompressibility={p}; use incompressibility=0 and a larger poissons_ratio"
            )
