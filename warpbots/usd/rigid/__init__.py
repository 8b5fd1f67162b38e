"""Rigid bodies, joints, drives and colliders as prims of UsdPhysics."""

__all__: list[str] = []
