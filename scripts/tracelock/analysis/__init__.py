"""Figures: numpy arrays in, dataclasses out."""
