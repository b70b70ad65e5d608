"""Planned models on processes of gloo."""
