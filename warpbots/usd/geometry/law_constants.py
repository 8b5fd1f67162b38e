"""Constants of the laws of materials: an attribute for each constant, with name and unit from the law."""

from pxr import Usd

from warpbots.materials import LAWS, LawConstant, constant_values, law_of
from warpbots.scene import Material, SceneError
from warpbots.usd.stage.attributes import clear, get_row, put_row
from warpbots.usd.stage.schema import Row, rows
from warpbots.usd.stage.units import UNITS, StageUnits

__all__ = ["read_constants", "write_constants"]


def read_constants(prim: Usd.Prim, law: str, frame: StageUnits) -> dict[str, float]:
    """`Material.constants` of a material with a law [SI units].

    Raises:
        SceneError: The law does not have one of the constants in the file, the file lacks a constant, a value is
            outside its range, or the law is not registered and the file has constants for it.
    """
    names = [name.removeprefix(_prefix()) for name in _authored(prim)]
    declared = _declared(law, names)
    units = {c.name: c for c in declared}
    given = {name: get_row(prim, _row(name, units.get(name)), frame) for name in names}
    constant_values(law, tuple(declared), given)
    return given


def write_constants(prim: Usd.Prim, material: Material, frame: StageUnits) -> None:
    """Author `Material.constants` on `prim`, and remove all other constants.

    Raises:
        SceneError: A constant is unknown or missing, or its value outside its range; the law is not registered, or
            the unit of a constant cannot be converted.
    """
    for name in _authored(prim):
        clear(prim, name)
    declared = _declared(material.law, material.constants)
    constant_values(material.law, tuple(declared), material.constants)
    for c in declared:
        put_row(prim, _row(c.name, c), material.constants.get(c.name), frame)


def _declared(law: str, given: object) -> tuple[LawConstant, ...]:
    """The constants of a law; none for a law that is not registered, if none are `given`."""
    if law in LAWS:
        return law_of(law).constants
    if given:
        raise SceneError(
            f"law {law!r} is not registered, and has constants here ({', '.join(given)}), whose units only the law "
            f"says; register it first: warpbots.materials.LAWS[{law!r}] = ..."
        )
    return ()


def _prefix() -> str:
    return rows("Material.constants")[0].name.removesuffix("{constant}")


def _authored(prim: Usd.Prim) -> list[str]:
    """Names of the attributes of constants that have a value."""
    names = prim.GetAuthoredPropertyNames(lambda name: name.startswith(_prefix()))
    return [name for name in names if prim.GetAttribute(name).HasAuthoredValue()]


def _row(name: str, constant: LawConstant | None) -> Row:
    """The row of a constant; a constant that the law does not have is read without conversion, and then refused."""
    unit = constant.unit if constant else "1"
    if unit not in (*UNITS, "kg/m^dim"):
        raise SceneError(
            f"constant {name!r} has the unit {unit!r}, which cannot be converted to units of a file; declare it in one "
            f"of {', '.join((*UNITS, 'kg/m^dim'))}"
        )
    row = rows("Material.constants")[0]
    return row._replace(name=_prefix() + name, kind="number", unit=unit)
