"""How many programs of a launch fit a multiprocessor of compute capability 9.0 at once (CUDA C++ Programming Guide,
tables of technical specifications; register and shared memory granularity as in the occupancy calculator)."""

from __future__ import annotations

WARPS = 64
PROGRAMS = 32
REGISTERS = 65536
REGISTER_UNIT = 256  # registers are given to a warp in units of this many
SHARED = 228 << 10
SHARED_RESERVED = 1 << 10  # bytes a program, for the system


def resident(registers: int, warps: int, shared: int) -> tuple[int, str]:
    """Programs a multiprocessor, and what limits them."""
    per_warp = -(-registers * 32 // REGISTER_UNIT) * REGISTER_UNIT
    limits = {
        "its warps": WARPS // max(1, warps),
        "programs": PROGRAMS,
        "registers": REGISTERS // max(1, per_warp * warps),
        "shared memory": SHARED // (shared + SHARED_RESERVED),
    }
    name = min(limits, key=lambda k: limits[k])
    return limits[name], name


def occupancy(registers: int, warps: int, shared: int) -> tuple[float, str]:
    """Share of the warps that can be resident, and what limits it."""
    programs, name = resident(registers, warps, shared)
    return min(1.0, programs * warps / WARPS), name
