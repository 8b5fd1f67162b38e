"""Fields that are stored to the last bit beside standard geometry, joints and bodies, in SI units and scene axes."""

from warpbots.scene import (
    Box,
    Capsule,
    Cylinder,
    DistanceGrid,
    HalfSpace,
    Heightfield,
    Points,
    Posed,
    Sheet,
    Silhouette,
    Sphere,
    TetMesh,
    TriangleMesh,
    Truss,
    Union,
)

__all__ = ["EXACT", "FIELD_ARRAYS", "JOINT_FIELDS", "REST_POSE", "RIGID_FIELDS", "SHAPES", "SHAPE_FIELDS"]

EXACT = "warpbots:exact:"
"""Prefix of attributes that hold a value to the last bit, in SI units and scene axes."""

SHAPE_FIELDS = {
    Box: {"lower": "vector", "upper": "vector"},
    Sphere: {"center": "vector", "radius": "number"},
    Capsule: {"start": "vector", "end": "vector", "radius": "number"},
    Cylinder: {"start": "vector", "end": "vector", "radius": "number"},
    HalfSpace: {"point": "vector", "normal": "vector"},
    Heightfield: {"origin": "vector", "spacing": "number", "heights": "grid"},
    Silhouette: {"mask": "rows", "lower": "vector", "pixel": "number"},
    TriangleMesh: {"vertices": "points", "faces": "indices"},
    Points: {"positions": "points", "volumes": "vector"},
    DistanceGrid: {"values": "grid", "lower": "vector", "spacing": "number"},
    Truss: {"joints": "points", "bars": "indices", "radius": "vector"},
    TetMesh: {"vertices": "points", "tets": "indices"},
    Sheet: {"vertices": "points", "faces": "indices", "thickness": "number", "bending": "number"},
    Posed: {"translation": "vector", "rotation": "grid"},
    Union: {},
}
"""Fields of each shape; field f is stored in ``warpbots:exact:f`` if the geometry of the prim does not reproduce it."""

SHAPES = {cls.__name__: cls for cls in SHAPE_FIELDS}
"""Values of the attribute ``warpbots:shape``."""

FIELD_ARRAYS = ("values", "places", "recorded")
"""Fields of a `Field`, stored in ``warpbots:exact:<field>``, with their shape in ``...:size`` unless it is (n,)."""

REST_POSE = "pose"
"""Pose of a rigid body in the file of its scene, stored in ``warpbots:exact:pose`` beside the frames of a motion."""

RIGID_FIELDS = ("position", "rotation", "center", "moments", "cloud:positions", "cloud:areas")
"""Fields of a rigid body stored in ``warpbots:exact:<field>`` if the standard attributes do not give them."""

JOINT_FIELDS = (
    "position", "rotation", "axis", "start", "start_velocity", "stiffness", "neutral", "damping", "armature", "lower",
    "upper", "limit_stiffness", "limit_damping",
)  # fmt: skip
"""Fields of a joint stored in ``warpbots:exact:<field>`` if the standard attributes do not give them."""
