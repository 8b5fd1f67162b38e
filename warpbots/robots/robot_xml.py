"""The XML of robot files: what stands in it and in the files that it includes, before MuJoCo sees it."""

import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from warpbots.input_files import readable, refuse_outside
from warpbots.scene import SceneError

__all__ = ["family", "modern", "parsed", "refuse_empty", "refuse_strange_assets", "whole"]

_DEEPEST = 500
"""Elements inside one another; parsers that call themselves for each run out of stack at some thousands."""

_BYTE = 40.0
"""Memory that a byte of XML takes at the most while it is read [bytes]."""

_MOST = 50_000
"""Elements with all their copies; MuJoCo compiles 10^4 bodies in 15 s, and ten times as many in half an hour."""

_OUTDATED = {"option": "apirate", "contact": "internal"}
"""Attributes of older versions that newer ones refuse: a rate of network traffic, and one of flexes."""

_FILES = ("file", "fileright", "fileleft", "fileup", "filedown", "filefront", "fileback")
_FOLDERS = ("meshdir", "texturedir", "assetdir")
_MATTER = {"body", "flexcomp", "composite", "attach"}
"""Elements of MJCF that make bodies."""


def parsed(path: Path) -> Element:
    """Root of an XML file.

    Raises:
        FileNotFoundError: There is no such file.
        SceneError: It is no XML, too large or too deep, or declares entities, which may stand for any amount of text.
    """
    readable(path, _BYTE)
    builder, parser, depth = TreeBuilder(), expat.ParserCreate(), 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _DEEPEST:
            raise SceneError(f"{path}: more than {_DEEPEST} elements stand inside one another; flatten them")
        builder.start(tag, attributes)

    def end(tag: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(tag)

    def declare(name: str, *_: object) -> None:
        raise SceneError(
            f"{path} declares the entity {name!r}, and entities are not read; write out what it stands for"
        )

    parser.StartElementHandler, parser.EndElementHandler, parser.EntityDeclHandler = start, end, declare
    try:
        parser.Parse(_begun(path.read_bytes()), True)
    except (expat.ExpatError, ValueError, LookupError) as fault:  # MuJoCo takes some that are no XML
        if isinstance(fault, SceneError):
            raise
        raise SceneError(f"{path} cannot be read as XML: {fault}; see that place and its encoding") from fault
    return builder.close()


def _begun(text: bytes) -> bytes:
    """Text whose declaration does not stand behind comments and blanks, where none may stand."""
    found = re.match(rb"(?:\s|<!--.*?-->)+(<\?xml.*?\?>)", text, re.DOTALL)
    return text if found is None else text[: found.start(1)] + text[found.end(1) :]


def family(path: Path, root: Path) -> dict[Path, Element]:
    """An MJCF file and all that it includes, by place.

    Args:
        path: The file.
        root: The folder outside of which no file is read.

    Raises:
        SceneError: One of them includes itself, is not there, lies outside of `root`, or is no XML.
    """
    found: dict[Path, Element] = {}
    _gather(path, path, root, found, ())
    return found


def _gather(path: Path, main: Path, root: Path, found: dict[Path, Element], above: tuple[Path, ...]) -> None:
    if path.resolve() in above:
        raise SceneError(f"{path} includes itself by way of {above[-1].name}; take one <include> away")
    found[path] = parsed(path)
    for element in found[path].iter("include"):
        said = element.get("file", "")
        places = [p for p in (main.parent / said, path.parent / said) if p.is_file()]
        if not said or not places:
            raise SceneError(f"{path}: <include file={said!r}>: there is no such file in {main.parent}")
        refuse_outside(places[0].absolute(), path, root)
        _gather(places[0], main, root, found, (*above, path.resolve()))


def modern(files: dict[Path, Element]) -> dict[str, bytes]:
    """Text of the files without what stops MuJoCo and has no meaning here, by path.

    That is attributes that newer versions refuse, and materials that nobody defines.
    """
    known = {element.get("name") for tree in files.values() for element in tree.iter("material")}
    alone = not any(True for tree in files.values() for _ in tree.iter("attach"))  # which brings materials of its own
    found = {}
    for path, tree in files.items():
        lost = {said for e in tree.iter() if alone and (said := e.get("material", "")) not in known | {""}}
        outdated = [(tag, name) for tag, name in _OUTDATED.items() if any(name in e.attrib for e in tree.iter(tag))]
        if not lost and not outdated:
            continue
        text = path.read_bytes()
        for tag, name in outdated:
            value = rb"""\s*=\s*("[^"]*"|'[^']*')"""
            text = re.sub(rb"(<%b\b[^>]*?\s)%b%b" % (tag.encode(), name.encode(), value), rb"\1", text)
        for material in lost:
            text = re.sub(rb"""\smaterial\s*=\s*(["'])%b\1""" % re.escape(material).encode(), b"", text)
        found[str(path)] = text
    return found


def refuse_strange_assets(files: dict[Path, Element], main: Path, root: Path) -> None:
    """Raise if files of MJCF refer to assets outside of `root`, or to those that Git has not brought.

    Raises:
        SceneError: They do.
    """
    folders = {""} | {e.get(f, "") for tree in files.values() for e in tree.iter("compiler") for f in _FOLDERS}
    for path, tree in files.items():
        for element in tree.iter():
            for said in (element.get(name) for name in _FILES if element.tag != "include"):
                for place in (main.parent / folder / said for folder in folders if said):
                    if place.is_file():
                        refuse_outside(place.absolute(), path, root)
                        if element.tag != "texture":
                            readable(place)


def refuse_empty(files: dict[Path, Element], main: Path) -> None:
    """Raise if MJCF has no bodies, or by replication more than there is room for.

    Raises:
        SceneError: It has.
    """
    tags = {element.tag for tree in files.values() for element in tree.iter()}
    if not tags & _MATTER:
        remedy = whole(main) or "a robot needs at least one <body> or <link>"
        raise SceneError(f"{main} holds no bodies beside the world; {remedy}")
    count = sum(_count(tree) for tree in files.values())
    if count > _MOST:
        raise SceneError(
            f"{main}: it has {count:.3g} elements with all their copies, and more than {_MOST} are not compiled in a "
            f"time worth waiting for; replicate fewer"
        )


def _count(element: Element) -> float:
    """Elements that an element becomes, with its copies."""
    inside = 1.0 + sum(_count(child) for child in element)
    if element.tag not in ("replicate", "flexcomp", "composite"):
        return inside
    try:
        for number in element.get("count", "1").split():
            inside *= max(1.0, float(number))
    except ValueError:  # MuJoCo says what is wrong with it
        pass
    return inside


def whole(path: Path) -> str:
    """Which file to load in the place of one that is a part of it; empty if there is none in its folder."""
    for other in sorted(path.absolute().parent.glob("*.xml")):
        if other != path.absolute() and path.name in _included(other):
            return f"it is a part of {other.name}: load that"
    return ""


def _included(path: Path) -> Iterator[str]:
    try:
        return (Path(e.get("file", "")).name for e in parsed(path).iter("include"))
    except (SceneError, OSError):
        return iter(())
