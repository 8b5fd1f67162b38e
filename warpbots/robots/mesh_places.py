"""Locates the meshes of URDF files, which refer to them by path, or by a ``file``, ``package`` or ``model`` URI."""

import dataclasses
import functools
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from warpbots.input_files import readable, refuse_outside
from warpbots.robots.mesh_files import READ
from warpbots.scene import SceneError

__all__ = ["checked_packages", "locate_meshes"]

_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/*(.*)", re.DOTALL)
"""A URI with a scheme of at least two letters: the drive of a Windows path is not a scheme."""

_WORKSPACE = ("", "src", "share", "install/share", "install/{}/share")
"""Folders of a ROS workspace in which packages lie side by side; {} is the name of the package."""

_MANIFEST = 2**16
"""Largest size of a package.xml that is read [bytes]."""

_NEAR = 4
"""Number of folders above a robot file in which packages are searched for by their package.xml."""

_ENTRIES = 3000
"""Largest number of folders, nearest first, that are searched for the package.xml of a package."""


@dataclasses.dataclass(frozen=True)
class _Reference:
    """A reference to a mesh.

    Attributes:
        text: Text of the reference in the file.
        package: Name of the package or model; None for a path.
        inside: Path of the mesh relative to the package, or relative to the robot file if there is no package.
    """

    text: str
    package: str | None
    inside: str


def checked_packages(packages: Mapping[str, str | Path] | None) -> dict[str, Path]:
    """The folders of packages that the user gives, as absolute paths.

    Raises:
        FileNotFoundError: There is no such folder.
    """
    found = {name: Path(folder) for name, folder in (packages or {}).items()}
    for name, folder in found.items():
        if not folder.is_dir():
            raise FileNotFoundError(f"packages[{name!r}]: there is no folder {folder}")
    return {name: folder.resolve() for name, folder in found.items()}


def locate_meshes(
    robot: Element, path: Path, root: Path, meshdir: str | None, packages: Mapping[str, Path]
) -> dict[str, Path]:
    """Locate the meshes of a URDF file, and replace each reference in `robot` by a unique file name.

    Args:
        robot: The element ``<robot>``; it is changed.
        path: The file.
        root: The folder outside which no file is read, except in packages.
        meshdir: A folder in which meshes are searched for by their paths, then by their file names; relative to the
            folder of the file.
        packages: Folders of packages by name, from `checked_packages`.

    Returns:
        The locations of the meshes, by the unique file names.

    Raises:
        SceneError: A mesh does not exist, lies outside `root`, or has an unsupported format; two references with
            different paths lead to the same file in `meshdir`.
    """
    known: dict[tuple[Path, str], str] = {}
    flat: dict[Path, _Reference] = {}
    places: dict[_Reference, Path] = {}
    for link in robot.findall("link"):
        for mesh in link.iter("mesh"):
            what = f"{path}: link {link.get('name')!r}"
            reference = _reference(mesh.get("filename", ""), what)
            place = places.get(reference) or _in_meshdir(reference, path, root, meshdir, flat)
            place = places[reference] = place or _place(reference, path, root, packages, what)
            if place.suffix.lower() not in READ:
                raise SceneError(
                    f"{what}: meshes are read from {', '.join(READ)}, got {reference.text!r}; convert it to one of them"
                )
            key, name, count = (place, mesh.get("scale", "")), f"{place.stem}.stl", 1
            while key not in known and name in known.values():
                count += 1
                name = f"{place.stem} {count}.stl"
            mesh.set("filename", known.setdefault(key, name))
    return {name: place for (place, _), name in known.items()}


def _reference(text: str, what: str) -> _Reference:
    """A reference to a mesh, split into its parts.

    Raises:
        SceneError: The reference is empty, or has an unsupported scheme.
    """
    said = text.strip()
    if not said:
        raise SceneError(f"{what}: a <mesh> has no filename; give it one")
    uri = _URI.fullmatch(said)
    if uri is None:
        return _Reference(said, None, said)
    scheme, rest = uri[1].lower(), uri[2]
    if scheme == "file":
        absolute = said[len(scheme) + 1 :].startswith("/")
        return _Reference(said, None, f"/{rest.removeprefix('localhost/')}" if absolute else rest)
    if scheme not in ("package", "model"):
        raise SceneError(
            f"{what}: the mesh {text!r} has the scheme {uri[1]!r}; supported are package, model and file, and paths: "
            f"put a copy on the disk"
        )
    package, _, inside = rest.replace("\\", "/").partition("/")
    return _Reference(said, unquote(package), inside)


def _spellings(said: str) -> list[str]:
    """Variants of a path to try: as written, with Windows separators replaced, and with percent codes decoded."""
    plain = said.replace("\\", "/")
    return list(dict.fromkeys((said, plain, unquote(plain))))


def _in_meshdir(
    reference: _Reference, path: Path, root: Path, meshdir: str | None, flat: dict[Path, _Reference]
) -> Path | None:
    """The file in `meshdir` to which a reference leads, by its path or else by its file name; None if there is none.

    Args:
        reference: The reference.
        path: The robot file.
        root: The folder outside which no file is read.
        meshdir: The folder of all meshes; None if there is no such folder.
        flat: The references that were found by file name so far, by their files; this reference is added if it is found
            by file name.

    Raises:
        SceneError: Two references with different paths lead to the same file.
    """
    if meshdir is None:
        return None
    folder = path.resolve().parent / meshdir
    for said in _spellings(reference.inside):
        whole = folder / said
        place = whole if whole.is_file() else folder / Path(said).name
        if place.is_file():
            other = flat.setdefault(place, reference) if place != whole else reference
            if (other.package, other.inside) != (reference.package, reference.inside):
                raise SceneError(
                    f"{path}: {other.text!r} and {reference.text!r} both are {place} by meshdir={meshdir!r}, which has "
                    f"all meshes in one folder; leave meshdir out, or rename one"
                )
            refuse_outside(place, path, root)
            return readable(place)
    return None


def _place(reference: _Reference, path: Path, root: Path, packages: Mapping[str, Path], what: str) -> Path:
    """The file to which a reference leads.

    Raises:
        SceneError: There is no such file; the message lists the places searched.
    """
    searched: list[Path] = []
    for folder, bound in _folders(reference, path, root, packages):
        for said in _spellings(reference.inside):
            place = folder / said
            if place.is_file():
                refuse_outside(place, path, bound)
                return readable(place)
        searched.append(folder)
    raise SceneError(f"{what}: there is no mesh {reference.text!r}; {_remedy(reference, path, root, searched)}")


def _folders(
    reference: _Reference, path: Path, root: Path, packages: Mapping[str, Path]
) -> Iterator[tuple[Path, Path]]:
    """The folders to which the path of a reference may be relative, each with a folder that must contain the file."""
    own = path.resolve().parent
    if reference.package is None:
        yield own, root
    elif reference.package in packages:
        yield packages[reference.package], packages[reference.package]
    else:
        yield from _package_folders(reference.package, own, root)


def _package_folders(name: str, own: Path, root: Path) -> Iterator[tuple[Path, Path]]:
    """Folders of the package `name`, each with a folder that must contain the file.

    The folder of the robot file and its parent folders are tried first, then folders beside these. Parent folders are
    searched up to, but not including, the home folder, or up to `root` if `root` is above the home folder.
    """
    parents, seen = _parents(own, root), set[Path]()
    near = [above for above in parents if above.is_relative_to(root) or above in parents[:_NEAR]]
    beside, manifests = functools.partial(_side_by_side, name), _Manifests()
    for places, levels in ((lambda above: [above], parents), (beside, parents), (manifests, near)):
        for above in levels:
            for folder in places(above):
                if folder not in seen and folder.is_dir() and _package_name(folder) == name:
                    seen.add(folder)
                    yield folder, root if above.is_relative_to(root) else above


def _parents(own: Path, root: Path) -> list[Path]:
    """The folders to search: the folder of the robot file, the folders above it, and `root` if it is none of them."""
    found = []
    for folder in (own, *own.parents):
        if Path.home().resolve().is_relative_to(folder) and not folder.is_relative_to(root):
            break
        found.append(folder)
    return found if root in found else [*found, root]


def _side_by_side(name: str, above: Path) -> list[Path]:
    """Folders in which the package `name` can lie if `above` is in a ROS workspace, and its folder is called `name`."""
    return [above / part.format(name) / name for part in _WORKSPACE]


class _Manifests:
    """Finds folders that contain a package.xml, one or two levels below a folder; the number of folders is limited."""

    def __init__(self):
        self.left = _ENTRIES

    def __call__(self, above: Path) -> list[Path]:
        found: list[Path] = []
        level = [above]
        for _ in range(2):
            level = [folder for parent in level for folder in self._inside(parent)]
            found += [folder for folder in level if (folder / "package.xml").is_file()]
        return found

    def _inside(self, folder: Path) -> list[Path]:
        """The subfolders of `folder`; not more than may still be searched."""
        try:
            with os.scandir(folder) as entries:
                named = [e.path for e in entries if not e.name.startswith(".") and e.is_dir(follow_symlinks=False)]
        except OSError:
            return []
        found = sorted(named)[: self.left]
        self.left -= len(found)
        return [Path(path) for path in found]


def _package_name(folder: Path) -> str:
    """The name of the package in a folder: the name in its package.xml, or else the name of the folder."""
    manifest = folder / "package.xml"
    try:
        if manifest.is_file() and manifest.stat().st_size <= _MANIFEST:
            text = manifest.read_bytes()
            if b"<!ENTITY" not in text:
                return (ElementTree.fromstring(text).findtext("name") or folder.name).strip()
    except (OSError, ElementTree.ParseError):
        pass
    return folder.name


def _remedy(reference: _Reference, path: Path, root: Path, searched: list[Path]) -> str:
    """Remedy for a missing mesh, with the places searched."""
    name, own = reference.package, path.resolve().parent
    if name is None:
        similar = _other_case(own / reference.inside.replace("\\", "/"))
        hint = f"there is {similar.name}, which differs in case: rename it; " if similar else ""
        return (
            f"{hint}put it where the robot file says, {own / reference.inside}, or give the folder of meshes with "
            f"compiler={{'meshdir': ...}}"
        )
    if searched:
        places = ", ".join(map(str, searched))
        return f"package {name!r} is {places}, and does not have it there; get a complete copy of the package"
    places = ", ".join(map(str, _parents(own, root)))
    return (
        f"no folder is the package {name!r} by its name or its package.xml; searched were {places}, and the folders in "
        f"each of them and in their src, share and install; put the package there, or give its folder with "
        f"packages={{{name!r}: ...}}"
    )


def _other_case(place: Path) -> Path | None:
    """A file whose name differs from `place` only in case, or None."""
    try:
        names = [p for p in place.parent.iterdir() if p.name.lower() == place.name.lower()]
    except OSError:
        return None
    return names[0] if names else None
