"""Meshes of the circle, of S² and of boxes: built, or read from files; inspected; distributed."""
