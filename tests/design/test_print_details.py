"""Details of printed parts that went wrong without a word."""

import numpy as np
import pytest

import warpbots as wb
from warpbots.design import export
from warpbots.scene import Box, Inertia, SceneError

pytest.importorskip("manifold3d")
BLOCK = wb.RigidBody("block", Box((0.0, 0.0, 0.0), (0.02, 0.02, 0.02)), points=0)
CARRIER = wb.RigidBody("carrier", None, inertia=Inertia(1.0, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)))
SCENE = wb.Scene(
    [CARRIER, BLOCK],
    joints=[
        wb.Joint("base", "revolute", None, "carrier", position=(0.0, 0.0, 0.0)),
        wb.Joint("hinge", "revolute", "carrier", "block", position=(0.01, 0.01, 0.01)),
    ],
)


def test_the_length_of_the_upward_direction_does_not_matter():
    import trimesh

    tapered = trimesh.creation.box((10.0, 10.0, 10.0))
    x = tapered.vertices.copy()
    x[x[:, 2] < 0.0, :2] *= 0.8  # sides that lean by 6 degrees
    tapered.vertices = x
    for length in (0.1, 1.0, 10.0):
        assert export.overhang_share(tapered, 45.0, np.array([0.0, 0.0, length])) == 0.0
        assert export.overhang_share(tapered, 5.0, np.array([0.0, 0.0, length])) == pytest.approx(0.688, abs=1e-3)
    with pytest.raises(ValueError, match="overhang_share: up must be three numbers, not all zero"):
        export.overhang_share(tapered, 45.0, np.zeros(3))


def test_a_hole_at_a_joint_without_a_printed_body_is_refused():
    with pytest.raises(SceneError, match="AxleHole at 'base': none of its bodies is printed"):
        export.printed_parts(SCENE, [export.AxleHole("base", 3e-3)])


def test_the_report_lists_all_holes_of_a_joint():
    holes = [export.AxleHole("hinge", 3e-3, fastener="M3"), export.AxleHole("hinge", 5e-3, length=0.01, fastener="M5")]
    lines = export.check(SCENE, holes).text().splitlines()
    assert "| hinge | M3 | 3.00 | 20.0 | 3.20 in block |" in lines and "- 1 × M3, 3.00 mm × 20.0 mm" in lines
    assert "| hinge | M5 | 5.00 | 10.0 | 5.20 in block |" in lines and "- 1 × M5, 5.00 mm × 10.0 mm" in lines


@pytest.mark.parametrize("value", [0, -1])
def test_measures_that_no_check_can_have_are_refused(value):
    """Without depth, parts that only touch collide; the search for walls had no end."""
    import trimesh

    box = trimesh.creation.box((10.0, 10.0, 10.0))
    parts = export.printed_parts(SCENE)
    for check, said in (
        (lambda: export.sweep(SCENE, parts, tolerance=value), f"sweep: tolerance must be positive, got {value}"),
        (lambda: export.sweep(SCENE, parts, poses=value), f"sweep: poses must be positive, got {value}"),
        (lambda: export.thinnest_wall(box, value), rf"thinnest_wall: limit must be positive \[mm\], got {value}"),
        (lambda: export.overhang_share(box, value - 1), rf"angle must be in \[0, 90\] degrees, got {value - 1}"),
    ):
        with pytest.raises((ValueError, SceneError), match=said):
            check()
