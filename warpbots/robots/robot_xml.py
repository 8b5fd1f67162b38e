"""Parses and checks the XML of robot files, and of files that they include, before MuJoCo reads it."""

import codecs
import os
import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from warpbots.input_files import readable, refuse_outside
from warpbots.scene import SceneError

__all__ = [
    "NAMED", "including_file", "is_robot", "modernised", "parsed", "refuse_empty", "refuse_foreign_assets",
    "with_includes",
]  # fmt: skip

NAMED = (".urdf", ".xml", ".mjcf")
"""Usual endings of robot files; others are recognised by their content."""

_START = 4096
"""Length of the beginning of a file by which XML is recognised [bytes]."""

_DEEPEST = 500
"""Largest depth of nested elements; recursive parsers run out of stack at some thousands."""

_BYTE = 40.0
"""Largest memory for reading XML, per byte of the file [bytes]."""

_MOST = 50_000
"""Largest number of elements, counting replicated copies; MuJoCo compiles 10^4 bodies in 15 s, 10^5 in half an hour."""

_OUTDATED = {"option": "apirate", "contact": "internal"}
"""Attributes, by their elements, that newer versions of MuJoCo reject; neither has a meaning here."""

_PREAMBLE = re.compile(rb"\A((?:\s|<!--.*?-->)+)<\?xml.*?\?>", re.DOTALL)
"""An XML declaration, with the comments and blanks before it, which XML does not allow there."""

_FILES = ("file", "fileright", "fileleft", "fileup", "filedown", "filefront", "fileback")
_FOLDERS = ("meshdir", "texturedir", "assetdir")
_MATTER = {"body", "flexcomp", "composite", "attach"}
"""Elements of MJCF that make bodies."""


def is_robot(path: str | os.PathLike) -> bool:
    """Whether the name of a file ends like a robot file, or its content begins like XML."""
    path = Path(path)
    if path.suffix.lower() in NAMED:
        return True
    try:
        with path.open("rb") as file:
            start = file.read(_START)
    except OSError:
        return False
    for mark in (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        start = start.removeprefix(mark)
    return start.lstrip(b"\0 \t\r\n").startswith(b"<")


def parsed(path: Path) -> Element:
    """Root of an XML file.

    Raises:
        FileNotFoundError: There is no such file.
        SceneError: The file is not XML, is too large or too deep, or declares entities, which can expand without bound.
    """
    readable(path, _BYTE)
    builder, parser, depth = TreeBuilder(), expat.ParserCreate(), 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _DEEPEST:
            raise SceneError(f"{path}: elements are nested more than {_DEEPEST} levels deep; flatten them")
        builder.start(tag, attributes)

    def end(tag: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(tag)

    def declare(name: str, *_: object) -> None:
        raise SceneError(f"{path} declares the entity {name!r}, and entities are not supported; replace it by its text")

    parser.StartElementHandler, parser.EndElementHandler, parser.EntityDeclHandler = start, end, declare
    try:
        parser.Parse(_PREAMBLE.sub(rb"\1", path.read_bytes(), count=1), True)
    except (expat.ExpatError, ValueError, LookupError) as fault:  # MuJoCo accepts some files that are not XML
        if isinstance(fault, SceneError):
            raise
        raise SceneError(f"{path} cannot be read as XML: {fault}; check the file there, and its encoding") from fault
    return builder.close()


def with_includes(path: Path, tree: Element, root: Path) -> dict[Path, Element]:
    """Root elements of an MJCF file and of all files that it includes, by the paths of the files.

    Args:
        path: The file.
        tree: Root element of the file.
        root: The folder outside which no file is read.

    Raises:
        SceneError: One of these files includes itself, does not exist, lies outside `root`, or is not XML.
    """
    found = {path: tree}
    _gather(path, path, root, found, ())
    return found


def _gather(path: Path, main: Path, root: Path, found: dict[Path, Element], above: tuple[Path, ...]) -> None:
    if path.resolve() in above:
        raise SceneError(f"{path} includes itself by way of {above[-1].name}; remove one <include>")
    found[path] = found[path] if path == main and not above else parsed(path)
    for element in found[path].iter("include"):
        said = element.get("file", "")
        places = [p for p in (main.parent / said, path.parent / said) if p.is_file()]
        if not said or not places:
            raise SceneError(f"{path}: <include file={said!r}>: there is no such file in {main.parent}")
        refuse_outside(places[0].absolute(), path, root)
        _gather(places[0], main, root, found, (*above, path.resolve()))


def modernised(files: dict[Path, Element]) -> dict[str, bytes]:
    """Corrected texts, by path, of the files that MuJoCo would reject for content without effect on the motion.

    Attributes that newer versions of MuJoCo reject, and references to undefined materials, are removed. Attached models
    whose file names do not end in .xml are marked as XML, because MuJoCo recognises XML by this ending alone.
    """
    known = {element.get("name") for tree in files.values() for element in tree.iter("material")}
    alone = not any(True for tree in files.values() for _ in tree.iter("attach"))  # it brings materials of its own
    found = {}
    for path, tree in files.items():
        lost = {said for e in tree.iter() if alone and (said := e.get("material", "")) not in known | {""}}
        outdated = [(tag, name) for tag, name in _OUTDATED.items() if any(name in e.attrib for e in tree.iter(tag))]
        unmarked = [
            e for e in tree.iter("model") if "content_type" not in e.attrib and not e.get("file", "").endswith(".xml")
        ]
        if not lost and not outdated and not unmarked:
            continue
        text = path.read_bytes()
        if unmarked:
            text = re.sub(rb"<model\b(?![^>]*\scontent_type\s*=)", rb'<model content_type="text/xml"', text)
        for tag, name in outdated:
            value = rb"""\s*=\s*("[^"]*"|'[^']*')"""
            text = re.sub(rb"(<%b\b[^>]*?\s)%b%b" % (tag.encode(), name.encode(), value), rb"\1", text)
        for material in lost:
            text = re.sub(rb"""\smaterial\s*=\s*(["'])%b\1""" % re.escape(material).encode(), b"", text)
        found[str(path)] = text
    return found


def refuse_foreign_assets(files: dict[Path, Element], main: Path, root: Path) -> None:
    """Raise if files of MJCF refer to assets outside `root`, or to Git LFS pointers.

    Raises:
        SceneError: A file refers to such an asset; the message names the first one.
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
    """Raise if an MJCF file has no bodies, or has too many bodies because of replication.

    Raises:
        SceneError: There are no bodies, or there are too many.
    """
    tags = {element.tag for tree in files.values() for element in tree.iter()}
    if not tags & _MATTER:
        remedy = including_file(main) or "a robot needs at least one <body> or <link>"
        raise SceneError(f"{main} has no bodies besides the world; {remedy}")
    count = sum(_count(tree) for tree in files.values())
    if count > _MOST:
        raise SceneError(
            f"{main}: it has {count:.3g} elements with all copies; more than {_MOST} would take MuJoCo too long "
            f"to compile, replicate fewer"
        )


def _count(element: Element) -> float:
    """Number of elements that an XML element expands to, including replicated copies and its children."""
    inside = 1.0 + sum(_count(child) for child in element)
    if element.tag not in ("replicate", "flexcomp", "composite"):
        return inside
    try:
        for number in element.get("count", "1").split():
            inside *= max(1.0, float(number))
    except ValueError:  # MuJoCo reports the error
        pass
    return inside


def including_file(path: Path) -> str:
    """The remedy to load another file of the folder, if that file includes the file `path`; else empty."""
    for other in sorted(path.absolute().parent.glob("*.xml")):
        if other != path.absolute() and path.name in _included(other):
            return f"it is part of {other.name}: load that instead"
    return ""


def _included(path: Path) -> Iterator[str]:
    try:
        return (Path(e.get("file", "")).name for e in parsed(path).iter("include"))
    except (SceneError, OSError):
        return iter(())
