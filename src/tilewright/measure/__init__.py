"""Measure: is an accepted kernel really faster, by how much, and how sure is that?"""

from .protocol import PROTOCOL, Protocol
from .record import Measurement

__all__ = ["PROTOCOL", "Measurement", "Protocol"]
