"""A soft body: a shape filled with a material, with names for its parts."""

from collections.abc import Mapping, Sequence

from warpbots.scene.color import require_color
from warpbots.scene.field_types import Triple
from warpbots.scene.material import Material
from warpbots.scene.record import SceneError, record
from warpbots.scene.shapes import Shape, dimension

__all__ = ["SoftBody"]


@record
class SoftBody:
    """A body of deformable matter.

    Attributes:
        name: Unique name of the body.
        shape: Region that the matter fills at rest.
        material: Material of the matter.
        regions: Shapes of named regions, by name. A region is all matter of this body whose rest position lies in the
            shape. Actuators, observers and material overrides refer to regions by name.
        region_materials: Materials of regions whose material differs from `material`, by name of the region; they must
            have the same constitutive law as `material`. An element has the material of the region in which its centre
            lies, so put the faces of regions between elements.
        friction: Coulomb coefficient mu >= 0 of contact with soft bodies, including self-contact; a pair of bodies has
            the mean of their two coefficients. Contact with an obstacle uses `Obstacle.friction` alone. The friction
            of a `Contact` law replaces both. Only `ProjectiveDynamics` and, in contact with rigid bodies, `Coupled` use
            it: under `MPM` soft bodies that meet stick to each other, and contact between masses has no friction.
        velocity: Initial velocity [m/s], shape (dim,); None for rest.
        color: Red, green and blue in [0, 1] for pictures; None for a colour of the palette, see `Scene.colors`.

    Raises:
        SceneError: Shapes of different dimensions, a material for a region that does not exist, or a colour out of
            range.
    """

    name: str
    shape: Shape
    material: Material
    regions: Mapping[str, Shape] | None = None
    region_materials: Mapping[str, Material] | None = None
    velocity: Sequence[float] | None = None
    color: Triple[float] | None = None
    friction: float = 0.5

    def __post_init__(self):
        for field in ("regions", "region_materials"):
            object.__setattr__(self, field, getattr(self, field) or {})
        if self.friction < 0.0:
            raise SceneError(f"SoftBody {self.name!r}: friction must be a coefficient >= 0, got {self.friction:g}")
        require_color(self)
        dim = dimension(self.shape)
        for name, region in self.regions.items():
            if dimension(region) != dim:
                raise SceneError(f"SoftBody {self.name!r}: region {name!r} is {dimension(region)}D, the body is {dim}D")
        if self.velocity is not None and len(self.velocity) != dim:
            raise SceneError(f"SoftBody {self.name!r}: velocity {self.velocity} must have {dim} components")
        for fibre in (fibre for material in self.materials for fibre in material.fibres):
            if len(fibre.direction) != dim:
                raise SceneError(
                    f"SoftBody {self.name!r}: fibres of a {dim}D body need directions of {dim} components, got "
                    f"{fibre.direction}"
                )
        for name, material in self.region_materials.items():
            if name not in self.regions:
                raise SceneError(
                    f"SoftBody {self.name!r}: region_materials names {name!r}, which is not a region of this body; its "
                    f"regions are {', '.join(self.regions) or 'none'}"
                )
            if type(material.plasticity) is not type(self.material.plasticity):
                raise SceneError(
                    f"SoftBody {self.name!r}: region {name!r} has plasticity {_kind(material)}, the body "
                    f"{_kind(self.material)}; one body has one law of plasticity: use two adjacent bodies"
                )
            if (material.law, material.incompressibility) != (self.material.law, self.material.incompressibility):
                raise SceneError(
                    f"SoftBody {self.name!r}: region {name!r} has law {material.law!r} with incompressibility "
                    f"{material.incompressibility}, the body {self.material.law!r} with "
                    f"{self.material.incompressibility}; one body has one law: use two adjacent bodies"
                )

    @property
    def materials(self) -> tuple[Material, ...]:
        """The material of the body, followed by the materials of all regions that have another material."""
        return self.material, *self.region_materials.values()


def _kind(material: Material) -> str:
    return "None" if material.plasticity is None else type(material.plasticity).__name__
