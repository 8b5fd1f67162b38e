"""Limits of a stage: its size after composition, and the places of files that it may refer to."""

import os
from pathlib import Path

import pytest

from warpbots import Material, SceneError, usd
from warpbots.scene import memory_limit
from warpbots.usd.stage.size_limits import layers_of, refuse_prims

HEADER = '#usda 1.0\n(\n    defaultPrim = "World"\n    metersPerUnit = 1\n    upAxis = "Z"{}\n)\n'
BALL = 'def Xform "World"\n{\n    def Sphere "ball"\n    {\n        double radius = 0.1\n    }\n}\n'
SOFT = Material(1e5)


def write(path, content, layer=""):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(HEADER.format(layer) + content)
    return path


def count(path):
    """Prims of a stage, counted by opening it; the root of the stage is one of them."""
    from pxr import Usd

    stage = Usd.Stage.Open(str(path))
    return 1 + sum(1 for _ in stage.TraverseAll())


# how much


def doubling(path, levels):
    """Every prim has two references to the prim before it, so that each level doubles the number of prims."""
    content = 'def Xform "L0"\n{\n    def Sphere "s"\n    {\n    }\n}\n'
    for k in range(1, levels):
        inside = "".join(f'    def "{c}" (references = </L{k - 1}>)\n    {{\n    }}\n' for c in "ab")
        content += f'def Xform "L{k}"\n{{\n{inside}}}\n'
    return write(path, content)


def test_references_that_double_are_stopped_before_they_are_composed(tmp_path):
    """Forty levels are 10^12 prims; opening them would never end."""
    path = doubling(tmp_path / "bomb.usda", 40)
    with pytest.raises(SceneError, match=r"bomb.usda: it has more than 2000 prims.*pass max_prims=20000"):
        usd.read(path, SOFT, max_prims=2000)
    with pytest.raises(SceneError, match=r"more than 2000 prims"):
        usd.read_meshes(path, max_prims=2000)


def test_the_limit_can_be_raised(tmp_path):
    path = doubling(tmp_path / "small.usda", 3)
    with pytest.raises(SceneError, match=r"more than 10 prims"):
        usd.read(path, SOFT, max_prims=10)
    assert len(usd.read(path, SOFT, max_prims=100).bodies) == 7


def test_prims_are_counted_as_usd_composes_them(tmp_path):
    """Payloads, variants, inherited classes and sublayers: at least all prims, at most all their origins."""
    write(tmp_path / "ball.usda", BALL)
    write(tmp_path / "below.usda", 'def Xform "Low"\n{\n    def Sphere "s"\n    {\n    }\n}\n')
    variants = (
        'def Xform "V" (\n    variants = {\n        string kind = "ball"\n    }\n    prepend variantSets = "kind"\n)\n{\n'
        '    variantSet "kind" = {\n        "ball" (payload = @./ball.usda@) {\n        }\n        "none" {\n        }\n'
        "    }\n}\n"
    )
    classes = 'class "_C"\n{\n    def Sphere "c"\n    {\n    }\n}\ndef Xform "D" (inherits = </_C>)\n{\n}\n'
    path = write(tmp_path / "top.usda", BALL + variants + classes, "\n    subLayers = [@./below.usda@]")
    layer, prims = layers_of(path, tmp_path)[0], count(path)
    assert prims == 11
    with pytest.raises(SceneError):
        refuse_prims(layer, prims - 1)
    refuse_prims(layer, 2 * prims)


def test_a_text_nested_without_end_is_no_crash(tmp_path):
    """USD's parser overflows its stack at 10^5 levels and takes the process with it."""
    content = 'def "a" {\n' * 100_000 + "}\n" * 100_000
    with pytest.raises(SceneError, match=r"nested 100000 levels deep, more than the 10000"):
        usd.read(write(tmp_path / "deep.usda", content))
    braces = 'def "a" (doc = "{{{{") {\n' + f'    string s = "{"{" * 20_000}" # {"{" * 20_000}\n' + "}\n"
    with pytest.raises(SceneError, match="no body"):
        usd.read(write(tmp_path / "text.usda", braces))


def test_what_does_not_fit_into_memory_is_not_opened(tmp_path, monkeypatch):
    path = write(tmp_path / "large.usda", BALL + "# " + "x" * 10**6)
    monkeypatch.setattr(memory_limit, "available_memory", lambda: 1e7)
    with pytest.raises(SceneError, match=r"large.usda: its bytes: 1e\+06 of them need about 0.08 GB of memory"):
        usd.read(path, SOFT)


def test_sublayers_in_a_circle_end(tmp_path):
    write(tmp_path / "a.usda", BALL, "\n    subLayers = [@./b.usda@]")
    write(tmp_path / "b.usda", "", "\n    subLayers = [@./a.usda@]")
    assert [Path(layer.realPath).name for layer in layers_of(tmp_path / "a.usda", tmp_path)] == ["a.usda", "b.usda"]


# from where


def refer(arc, place):
    """A stage that takes a ball from another place."""
    if arc == "subLayers":
        return "", f"\n    subLayers = [@{place}@]"
    if arc == "variant":
        return (
            'def Xform "V" (prepend variantSets = "kind")\n{\n    variantSet "kind" = {\n'
            f'        "ball" (references = @{place}@) {{\n        }}\n    }}\n}}\n'
        ), ""
    return f'def Xform "V" ({arc} = @{place}@)\n{{\n}}\n', ""


@pytest.mark.parametrize("arc", ["references", "payload", "subLayers", "variant"])
@pytest.mark.parametrize("absolute", [False, True])
def test_files_elsewhere_are_read_only_when_allowed(tmp_path, arc, absolute):
    """Referred to by ``..`` or an absolute path, directly or through a file that may be read."""
    elsewhere = write(tmp_path / "elsewhere" / "ball.usda", BALL)
    place = elsewhere if absolute else "../../elsewhere/ball.usda"
    direct = write(tmp_path / "package" / "stages" / "direct.usda", *refer(arc, place))
    by_way = write(tmp_path / "package" / "stages" / "by_way.usda", *refer("references", "./direct.usda"))
    for path in (direct, by_way):
        with pytest.raises(SceneError, match=rf"direct.usda: it refers to .*ball.usda, which lies outside .*package; if you trust the file, pass asset_root='{tmp_path}'"):  # fmt: skip
            usd.read(path, SOFT)
        with pytest.raises(SceneError, match="lies outside"):
            usd.read_meshes(path)
    if arc != "variant":
        assert usd.read(direct, SOFT, asset_root=tmp_path).bodies[0].name == "ball"
    with pytest.raises(FileNotFoundError, match=r"asset_root: there is no folder"):
        usd.read(direct, SOFT, asset_root=tmp_path / "nowhere")


def test_folders_side_by_side_are_one_package(tmp_path, monkeypatch):
    """For example ``stages/`` and ``parts/``; but not if they lie in the home folder or above it."""
    write(tmp_path / "parts" / "ball.usda", BALL)
    path = write(tmp_path / "stages" / "stage.usda", *refer("references", "../parts/ball.usda"))
    assert len(usd.read(path, SOFT).bodies) == 1
    for home in (tmp_path, tmp_path / "people" / "me"):
        monkeypatch.setattr(Path, "home", lambda home=home: home)
        with pytest.raises(SceneError, match=r"outside .*stages"):
            usd.read(path, SOFT)


def test_links_count_by_where_they_lead(tmp_path):
    elsewhere = write(tmp_path / "elsewhere" / "ball.usda", BALL)
    path = write(tmp_path / "package" / "stages" / "stage.usda", *refer("references", "./link.usda"))
    try:
        (path.parent / "link.usda").symlink_to(elsewhere)
    except OSError:
        pytest.skip("no links here")
    with pytest.raises(SceneError, match="lies outside"):
        usd.read(path, SOFT)


def test_a_scene_with_parts_elsewhere_is_written_over_its_source(tmp_path):
    """If they were allowed for reading, they need not be allowed again for writing."""
    write(tmp_path / "elsewhere" / "ball.usda", BALL)
    path = write(tmp_path / "package" / "stages" / "stage.usda", *refer("references", "../../elsewhere/ball.usda"))
    scene = usd.read(path, SOFT, asset_root=tmp_path)
    usd.write(path.parent / "again.usda", scene)
    with pytest.raises(SceneError, match="lies outside"):
        usd.read(path.parent / "again.usda")
    assert usd.read(path.parent / "again.usda", asset_root=tmp_path) == scene


POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:" + 64 * "0" + "\nsize 12345\n"


@pytest.mark.parametrize("name", ["ball.usda", "ball.usd", "ball.usdc", "ball.usdz"])
def test_pointers_of_git_are_named(tmp_path, name):
    (tmp_path / name).write_text(POINTER)
    with pytest.raises(SceneError, match=rf"{name} is a Git LFS pointer, not the file; run: git lfs pull"):
        usd.read(tmp_path / name)
    with pytest.raises(SceneError, match=rf"{name} is a Git LFS pointer"):
        usd.read(write(tmp_path / "stage.usda", *refer("payload", f"./{name}")), SOFT)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
def test_pipes_and_devices_are_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.usda")
    with pytest.raises(SceneError, match=r"pipe.usda: this is not a regular file"):
        usd.read(write(tmp_path / "stage.usda", *refer("references", "./pipe.usda")), SOFT)
