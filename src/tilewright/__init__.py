"""Tilewright: prove a GPU kernel right, measure it honestly, search for a faster one, make it an operator."""

__version__ = "0.1.0"
