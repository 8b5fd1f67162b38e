"""Geometry: conversion between shapes and prims, obstacles, and physics materials."""

__all__: list[str] = []
