"""Normalises URDF for MuJoCo's parser, which is stricter than other parsers."""

from pathlib import Path
from xml.etree.ElementTree import Element, SubElement

import numpy as np

from warpbots.scene import SceneError

__all__ = ["colors", "mimics", "normalised"]

_NUMBERS = {
    "xyz": 3, "rpy": 3, "scale": 3, "size": 3, "radius": 1, "length": 1, "value": 1, "lower": 1, "upper": 1,
    "effort": 1, "velocity": 1, "damping": 1, "friction": 1, "multiplier": 1, "offset": 1,
    "ixx": 1, "iyy": 1, "izz": 1, "ixy": 1, "ixz": 1, "iyz": 1,
}  # fmt: skip
"""Numeric attributes, with their number of values."""

_SURFACES = (
    "mu1", "mu2", "kp", "kd", "restitution_coefficient", "restitution", "lateral_friction", "rolling_friction",
    "spinning_friction", "contact_stiffness", "contact_damping", "contact_coefficients", "proximity_properties",
)  # fmt: skip
"""Elements by which other simulators describe the contact of links."""

_LINK, _JOINT = ("inertial", "collision"), ("origin", "parent", "child", "axis", "dynamics", "limit", "mimic")


def colors(robot: Element) -> dict[str, tuple[float, ...]]:
    """Colours (r, g, b, opacity) of links by name, from their first visual with a complete colour."""
    said = {m.get("name", ""): m.find("color") for m in robot.iter("material") if m.find("color") is not None}
    found = {}
    for link in robot.findall("link"):
        for material in link.iterfind("visual/material"):
            color = material.find("color")
            color = said.get(material.get("name", "")) if color is None else color
            try:
                numbers = () if color is None else tuple(map(float, color.get("rgba", "").split()))
            except ValueError:
                continue
            if len(numbers) == 4 and np.isfinite(numbers).all():
                found.setdefault(link.get("name", ""), numbers)
    return found


def mimics(robot: Element) -> tuple[str, ...]:
    """Names of the moving joints that mimic other joints."""
    following = [joint for joint in robot.findall("joint") if joint.find("mimic") is not None]
    return tuple(joint.get("name", "") for joint in following if joint.get("type") != "fixed")


def normalised(robot: Element, path: Path) -> list[str]:
    """Remove the elements of a robot because of which MuJoCo would reject the file, although other parsers ignore them.

    The removed elements are visuals, transmissions and elements of other simulators. If an element that may occur only
    once is repeated, the first one is used. An ``<axis>`` without numbers becomes x, the default of URDF; missing
    products of inertia become 0.

    Args:
        robot: The element ``<robot>``; it is changed.
        path: The file, for messages.

    Returns:
        A line for every change that may alter the meaning of the file.

    Raises:
        SceneError: A number is invalid, a name is not unique, a joint has no parent or child, an inertia is incomplete,
            or there are elements of xacro.
    """
    _refuse_macros(robot, path)
    lines = _strange_surfaces(robot)
    _keep(robot, ("link", "joint", "mujoco"), (), "the robot", lines)
    for link in robot.findall("link"):
        what = f"link {link.get('name')!r}"
        _keep(link, _LINK, ("inertial",), what, lines)
        for collision in link.findall("collision"):
            _keep(collision, ("origin", "geometry"), ("origin", "geometry"), what, lines)
        _check_numbers(link, what, path, lines)
        _mend_inertial(link, what, path, lines)
        _drop_empty_geometry(link, what, lines)
    for joint in robot.findall("joint"):
        what = f"joint {joint.get('name')!r}"
        _keep(joint, _JOINT[:-1] if joint.get("type") == "fixed" else _JOINT, _JOINT, what, lines)
        axis = joint.find("axis")
        if axis is not None and "xyz" not in axis.attrib:
            axis.attrib = {"xyz": "1 0 0"}
            if joint.get("type") != "fixed":
                lines.append(f"{what}: its <axis> has no xyz, so it is x, the default of URDF")
        _check_numbers(joint, what, path, lines)
    _check_names(robot, path)
    _settle_limits(robot, lines)
    return lines


def _refuse_macros(robot: Element, path: Path) -> None:
    """Raise if a file has unexpanded elements of xacro."""
    for element in robot.iter():
        if element.tag.startswith("xacro:"):
            raise SceneError(f"{path}: <{element.tag}> is xacro, not URDF; run xacro on it first")


def _strange_surfaces(robot: Element) -> list[str]:
    found: dict[str, set[str]] = {}
    for element in robot:
        name = element.get("name") if element.tag == "link" else element.get("reference")
        words = {e.tag.rpartition("}")[2].rpartition(":")[2] for e in element.iter()} & set(_SURFACES)
        if element.tag in ("link", "gazebo") and words:
            found.setdefault(", ".join(sorted(words)), set()).add(name or "")
    return [
        f"contact properties of other simulators ({words}): {', '.join(map(repr, sorted(names)))}"
        for words, names in found.items()
    ]


def _keep(parent: Element, tags: tuple[str, ...], once: tuple[str, ...], what: str, lines: list[str]) -> None:
    """Remove children whose tags are not in `tags`, and repeated children whose tags are in `once`."""
    seen = set()
    for child in list(parent):
        if child.tag not in tags or child.tag in seen:
            if child.tag in seen:
                lines.append(f"{what}: <{child.tag}> occurs more than once; the first is used")
            parent.remove(child)
        elif child.tag in once:
            seen.add(child.tag)


def _check_numbers(parent: Element, what: str, path: Path, lines: list[str]) -> None:
    for element in parent.iter():
        for name in element.attrib.keys() & _NUMBERS:
            text, count = element.attrib[name], _NUMBERS[name]
            words = text.split()
            try:
                [float(word) for word in words]
            except ValueError:
                words = []
            if len(words) < count:
                remedy = "run xacro on it first" if "$" in text else f"give {count} number{'s' if count > 1 else ''}"
                raise SceneError(f"{path}: {what}: <{element.tag} {name}={text!r}>; {remedy}")
            if len(words) > count:
                element.set(name, " ".join(words[:count]))
                lines.append(f"{what}: <{element.tag} {name}={text!r}>: only the first {count} of its numbers are used")


def _mend_inertial(link: Element, what: str, path: Path, lines: list[str]) -> None:
    inertial = link.find("inertial")
    if inertial is None:
        return
    mass, inertia = inertial.find("mass"), inertial.find("inertia")
    if mass is None or "value" not in mass.attrib:
        lines.append(f"{what}: its <inertial> has no mass, and is ignored")
        link.remove(inertial)
        return
    if float(mass.attrib["value"]) < 0.0:
        raise SceneError(f"{path}: {what} has a mass of {mass.attrib['value']} kg; give one of 0 or more")
    if inertia is None or not {"ixx", "iyy", "izz"} <= inertia.attrib.keys():
        raise SceneError(f"{path}: {what}: its <inertial> has a mass but no complete <inertia>; give ixx, iyy and izz")
    absent = [name for name in ("ixy", "ixz", "iyz") if name not in inertia.attrib]
    if absent:
        inertia.attrib |= dict.fromkeys(absent, "0")
        lines.append(f"{what}: its <inertia> has no {', '.join(absent)}; taken as 0")


def _drop_empty_geometry(link: Element, what: str, lines: list[str]) -> None:
    for collision in link.findall("collision"):
        solids = [solid for geometry in collision.findall("geometry") for solid in geometry]
        if not solids:
            link.remove(collision)
            continue
        for name in solids[0].attrib.keys() & {"size", "radius", "length"}:
            if min(map(float, solids[0].attrib[name].split())) <= 0.0:
                lines.append(f"{what}: a {solids[0].tag} of {name} {solids[0].attrib[name]}, which is not a solid")
                link.remove(collision)
                break


def _settle_limits(robot: Element, lines: list[str]) -> None:
    """Fix joints whose limits are equal, and report joints without limits or with a lower limit above the upper.

    By the definition of URDF a missing lower or upper limit is 0, but files that omit both limits mean a joint without
    limits. The effort in ``<limit>`` is kept.
    """
    found: dict[str, list[str]] = {}
    for joint in robot.findall("joint"):
        if joint.get("type") not in ("revolute", "prismatic"):
            continue
        limit = joint.find("limit")
        ends = {} if limit is None else {name: float(limit.get(name, "0")) for name in ("lower", "upper")}
        if limit is None or not {"lower", "upper"} & limit.attrib.keys():
            found.setdefault("joints without a lower and an upper limit", []).append(repr(joint.get("name")))
            continue
        limit.attrib |= {name: repr(end) for name, end in ends.items()}
        if ends["lower"] > ends["upper"]:
            found.setdefault("joints with a lower limit above the upper", []).append(repr(joint.get("name")))
            limit.attrib = {name: value for name, value in limit.attrib.items() if name not in ends}
        elif ends["lower"] == ends["upper"]:
            lines.append(f"joint {joint.get('name')!r}: both limits are {ends['lower']:g}, so it is fixed there")
            _fix(joint, ends["lower"])
    lines += [f"{what}, taken as without limits: {', '.join(names)}" for what, names in found.items()]
    fixed = {joint.get("name") for joint in robot.findall("joint") if joint.get("type") == "fixed"}
    for joint in robot.findall("joint"):
        mimic = joint.find("mimic")
        if mimic is not None and mimic.get("joint") in fixed:  # named with the other mimics
            joint.remove(mimic)


def _fix(joint: Element, coordinate: float) -> None:
    """Fix a revolute or prismatic joint in the pose that it has at `coordinate` [rad or m]."""
    from scipy.spatial.transform import Rotation

    origin, axis = joint.find("origin"), joint.find("axis")
    origin = SubElement(joint, "origin") if origin is None else origin
    position, turn = (_vector(origin, name, "0 0 0") for name in ("xyz", "rpy"))
    along = _vector(axis, "xyz", "1 0 0")
    step = coordinate * along / (np.linalg.norm(along) or 1.0)
    rotation = Rotation.from_euler("xyz", turn)
    if joint.get("type") == "prismatic":
        position = position + rotation.apply(step)
    else:
        rotation = rotation * Rotation.from_rotvec(step)
    if coordinate:
        origin.set("xyz", " ".join(map(repr, position.tolist())))
        origin.set("rpy", " ".join(map(repr, rotation.as_euler("xyz").tolist())))
    joint.set("type", "fixed")
    _keep(joint, ("origin", "parent", "child"), (), "", [])


def _vector(element: Element | None, name: str, default: str) -> np.ndarray:
    return np.array((default if element is None else element.get(name, default)).split(), dtype=float)


def _check_names(robot: Element, path: Path) -> None:
    """Check that names are unique and that joints connect links; add a link for the world if the file omits it."""
    joints = robot.findall("joint")
    for elements in (robot.findall("link"), joints):
        names = [element.get("name", "") for element in elements]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise SceneError(f"{path}: two {elements[0].tag}s are called {twice[0]!r}; names must be unique")
    links = {link.get("name") for link in robot.findall("link")}
    for joint in joints:
        for end in ("parent", "child"):
            element = joint.find(end)
            name = None if element is None else element.get("link")
            if name == "world" and end == "parent" and "world" not in links:
                SubElement(robot, "link", name="world")
                links.add(name)
            if name not in links:
                raise SceneError(
                    f"{path}: joint {joint.get('name')!r} has {'no ' + end if name is None else f'the {end} {name!r}'}"
                    f"{'' if name is None else ', and there is no such link'}; add it, or remove the joint"
                )
