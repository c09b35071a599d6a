"""What nvcc brings along and NVRTC does not: fixed-width integers, limits, and the C headers that declare them.

Constants are variables and not macros, so that CUDA's own C++ library may define its macros of these names after them.
"""

from __future__ import annotations

NAME = "tilewright_prelude.h"
TEXT = """#pragma once
using int8_t = signed char; using int16_t = signed short; using int32_t = signed int; using int64_t = signed long long;
using uint8_t = unsigned char; using uint16_t = unsigned short; using uint32_t = unsigned int;
using uint64_t = unsigned long long; using intptr_t = int64_t; using uintptr_t = uint64_t;
#define TW_CONSTANT static __device__ constexpr
TW_CONSTANT float INFINITY = __builtin_bit_cast(float, 0x7f800000), HUGE_VALF = INFINITY;
TW_CONSTANT float NAN = __builtin_bit_cast(float, 0x7fffffff);
TW_CONSTANT double HUGE_VAL = __builtin_bit_cast(double, 0x7ff0000000000000ll);
TW_CONSTANT float FLT_MAX = 3.402823466e+38f, FLT_MIN = 1.175494351e-38f, FLT_EPSILON = 1.192092896e-07f;
TW_CONSTANT double DBL_MAX = 1.7976931348623157e+308, DBL_MIN = 2.2250738585072014e-308;
TW_CONSTANT double DBL_EPSILON = 2.220446049250313e-16;
TW_CONSTANT int INT_MAX = 0x7fffffff, INT_MIN = -0x7fffffff - 1;
TW_CONSTANT unsigned UINT_MAX = 0xffffffffu;
TW_CONSTANT long long LLONG_MAX = 0x7fffffffffffffffll, LLONG_MIN = -0x7fffffffffffffffll - 1;
TW_CONSTANT double M_PI = 3.14159265358979323846, M_SQRT2 = 1.41421356237309504880;
TW_CONSTANT double M_SQRT1_2 = 0.70710678118654752440, M_2_SQRTPI = 1.12837916709551257390;
TW_CONSTANT double M_LOG2E = 1.4426950408889634074, M_LN2 = 0.69314718055994530942;
#undef TW_CONSTANT
namespace std { using ::int8_t; using ::int16_t; using ::int32_t; using ::int64_t; using ::uint8_t; using ::uint16_t;
using ::uint32_t; using ::uint64_t; }
"""
COVERED = ("stdint.h", "cstdint", "math.h", "cmath", "float.h", "cfloat", "limits.h", "climits", "stddef.h", "cstddef",
           "stdio.h", "cstdio", "stdlib.h", "cstdlib", "assert.h", "cassert", "cuda.h", "cuda_runtime.h",
           "cuda_runtime_api.h", "device_launch_parameters.h")  # fmt: skip


def headers() -> dict[str, str]:
    """By name: the prelude, and empty files for the headers that it stands for."""
    return {NAME: TEXT, **dict.fromkeys(COVERED, "")}
