"""CUDA C++ without a GPU: what is compiled, what is found wrong, and with which words."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tilewright.errors import EnvironmentProblem, KernelError, Unsupported
from tilewright.kernel import read
from tilewright.kernel.languages import _cuda_compile, _cuda_launch, _cuda_sources
from tilewright.prove.device.examination import untried
from tilewright.prove.examination import Examination
from tilewright.prove.examine import check, open_task
from tilewright.prove.finding import CaseRecord, Finding
from tilewright.prove.gates import compile as compile_gate
from tilewright.prove.gates import gate
from tilewright.prove.script import render
from tilewright.prove.verdict import GateReport
from tilewright.task.task import TaskSheet

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "06_cuda_softmax"
PROBLEM = str(EXAMPLES / "problem.py")


def nvrtc() -> bool:
    try:
        return _cuda_compile.nvrtc() is not None and bool(_cuda_compile.ptxas())
    except EnvironmentProblem:
        return False


COMPILERS = [
    pytest.param("nvcc", marks=pytest.mark.skipif(not shutil.which("nvcc"), reason="no nvcc")),
    pytest.param("nvrtc", marks=pytest.mark.skipif(not nvrtc(), reason="no NVRTC (extra cuda) or no ptxas")),
]
needs_a_compiler = pytest.mark.skipif(not shutil.which("nvcc") and not nvrtc(), reason="no compiler for CUDA C++")


@pytest.fixture(params=COMPILERS)
def compiler(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("TILEWRIGHT_NVRTC", "1" if request.param == "nvrtc" else "0")
    return str(request.param)


KERNEL = r"""
#include <cuda_fp16.h>
extern "C" __global__ void scale(const float *x, float *y, long long n)
{
    __shared__ float part[256];
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n) y[i] = part[threadIdx.x] * 2.0f + __half2float(__float2half(1.0f));
}
"""
SPILLING = r"""
extern "C" __global__ void spills(float *x)
{
    float a[4096];
    for (int i = 0; i < 4096; i++) a[i] = x[i * 32 + threadIdx.x];
    for (int i = 0; i < 4096; i++) x[i] = a[(int)a[i] & 4095];
}
"""


@pytest.mark.parametrize("target", _cuda_compile.TARGETS)
def test_needs_are_told_for_each_target(compiler: str, target: str) -> None:
    made = _cuda_compile.compile_source(KERNEL, "scale.cu", target)
    assert (made.ok, made.compiler) == (True, compiler)
    assert made.kernels["scale"].shared == 1024
    assert 4 <= made.kernels["scale"].registers <= 64
    assert made.kernels["scale"].spills == 0
    assert made.cubin[:4] == b"\x7fELF"


def test_memory_that_does_not_fit_into_registers_is_a_stack(compiler: str) -> None:
    made = _cuda_compile.compile_source(SPILLING, "spills.cu", "sm_90")
    assert made.kernels["spills"].stack >= 4096 * 4


def test_an_error_has_its_line(compiler: str) -> None:
    made = _cuda_compile.compile_source(KERNEL.replace("* 2.0f", "* two"), "scale.cu", "sm_90")
    (message,) = [m for m in made.messages if "error" in m.kind]
    assert (made.ok, message.line, message.text) == (False, 9, 'identifier "two" is undefined')


WITH_HEADERS = """
#include <cuda_runtime.h>
#include <cuda_bf16.h>
#include <cooperative_groups.h>
#include <stdint.h>
#include <cfloat>
#include <cmath>
extern "C" __global__ void k(const __nv_bfloat16 *x, float *y, int64_t n)
{
    cooperative_groups::this_thread_block().sync();
    std::uint32_t q = 3;
    y[0] = fmaxf(-FLT_MAX, -INFINITY) + NAN + (float)M_PI + __bfloat162float(x[n]) + q + INT_MAX;
}
"""


@pytest.mark.parametrize("target", _cuda_compile.TARGETS)
def test_what_nvcc_brings_along_is_there_for_nvrtc_too(compiler: str, target: str) -> None:
    text = WITH_HEADERS if compiler == "nvrtc" else WITH_HEADERS.replace("<cfloat>", "<cfloat>\n#include <climits>")
    made = _cuda_compile.compile_source(text, "k.cu", target)
    assert made.ok, made.messages


@pytest.mark.parametrize(
    ("symbol", "name"),
    [("_Z11row_softmaxPKfPfx", "row_softmax"), ("_ZN2ns3fooEv", "foo"), ("plain", "plain"), ("_Z1tIfEvPT_", "t")],
)
def test_names_of_kernels_are_readable(symbol: str, name: str) -> None:
    assert _cuda_compile.readable(symbol) == name


def test_ptx_that_is_too_new_for_ptxas_is_relabelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_cuda_compile, "_ptx_version", lambda: (8, 7))
    assert _cuda_compile.lowered(b"//\n.version 9.3\n.target sm_90") == b"//\n.version 8.7\n.target sm_90"
    assert _cuda_compile.lowered(b".version 8.4\n") == b".version 8.4\n"


# ---------------------------------------------------------------------------------------------------- launch comment


def plan(comment: str, kernels: str = 'extern "C" __global__ void k(float *x) {}') -> _cuda_launch.Plan:
    return _cuda_launch.plan(f"\n/* tilewright\n{comment}\n*/\n{kernels}\n", "k.cu")


def test_a_launch_is_read_from_the_comment() -> None:
    got = plan('[[launch]]\ngrid = ["(M + 3) // 4"]\nblock = [128, 2]\nshared = "4 * N"\narguments = ["x", "int N"]')
    (launch,) = got.launches
    assert launch == _cuda_launch.Launch("k", ("(M + 3) // 4",), (128, 2), "4 * N", (("", "x"), ("int", "N")))


@pytest.mark.parametrize(
    ("comment", "words"),
    [
        ("[[launch]]\nblock = [1]", "needs grid = [x, y, z]"),
        ("[[launch]]\ngrid = [1]\nblock = [1]\nthreads = 3", "unknown key 'threads'"),
        (
            '[[launch]]\nkernel = "other"\ngrid = [1]\nblock = [1]',
            "defines no extern \"C\" __global__ function 'other'",
        ),
        ('[[launch]]\ngrid = [1]\nblock = [1]\narguments = ["short n"]', "unknown type 'short'"),
        ("grid = [1", "is no TOML"),
        ("grid = [1]", r"has no \[\[launch\]\]"),
    ],
)
def test_what_is_wrong_with_a_comment_is_told_with_its_line(comment: str, words: str) -> None:
    with pytest.raises(KernelError, match=words if "\\" in words else re.escape(words)) as caught:
        plan(comment)
    assert caught.value.where == "k.cu:2"


def test_a_file_without_a_comment_is_told_what_to_write() -> None:
    with pytest.raises(KernelError, match="does not say how its kernel is launched") as caught:
        _cuda_launch.plan('extern "C" __global__ void k() {}', "k.cu")
    assert "[[launch]]" in str(caught.value.remedy)


# ------------------------------------------------------------------------------------------------------ device code

MIXED = """#include <torch/extension.h>
#include <cuda_fp16.h>
#define N 4 \\
    + 1
struct Pair { float a; float b; };
template <typename T> __device__ T twice(T x) { return x + x; }  // torch::Tensor
__global__ void k(float *x, Pair p) { x[0] = twice(p.a) + '"' + N; }
torch::Tensor run(torch::Tensor x) {
    k<<<1, 1>>>(x.data_ptr<float>(), {1, 2});
    return x;
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("run", &run); }
"""


def test_host_code_is_blanked_out_line_by_line() -> None:
    part = _cuda_sources.device_part(MIXED)
    assert part.count("\n") == MIXED.count("\n")
    assert "twice(p.a)" in part
    assert "struct Pair" in part
    assert not any(word in part for word in ("<<<", "PYBIND11", "torch/extension", "data_ptr"))


@needs_a_compiler
def test_device_code_of_an_extension_compiles_alone() -> None:
    assert _cuda_compile.compile_source(_cuda_sources.device_part(MIXED), "k.cu", "sm_90").ok


def test_a_python_file_hands_over_its_strings(tmp_path: Path) -> None:
    text = (
        "from torch.utils.cpp_extension import load_inline\n\n\nmodule = load_inline('m', cpp_sources='',\n"
        f"                     cuda_sources=r'''{MIXED}''')\n"
    )
    path = tmp_path / "m.py"
    path.write_text(text)
    found = _cuda_sources.note
    sources: list[_cuda_sources.Source] = []
    from torch.utils import cpp_extension

    kept = cpp_extension.load_inline, cpp_extension.load
    try:
        found(sources, text)
        scope: dict[str, object] = {}
        exec(text, scope)
    finally:
        cpp_extension.load_inline, cpp_extension.load = kept
    assert [(s.line, s.how) for s in sources] == [(5, "load_inline")]
    with pytest.raises(_cuda_sources.NeedsDevice, match="needs a GPU"):
        scope["module"].run(1)  # type: ignore[attr-defined]


@pytest.mark.parametrize("word", ["load_inline(", "torch.cuda._compile_kernel(", "cupy.RawKernel("])
def test_the_language_of_a_file_that_compiles_cuda(tmp_path: Path, word: str) -> None:
    path = tmp_path / "k.py"
    path.write_text(f"import torch\n\n\ndef kernel(x):\n    return {word}x)\n")
    assert read(str(path)).language == "cuda"


# --------------------------------------------------------------------------------------------------------- the gate


def compiled(kernel: Path) -> GateReport:
    sheet, reference = open_task(PROBLEM)
    exam = Examination(sheet, read(str(kernel)), reference, seed=7)
    try:
        return gate("compile").run(exam)
    finally:
        exam.close()
        reference.close()


@needs_a_compiler
@pytest.mark.parametrize("name", ["right.cu", "right_inline.py"])
def test_right_examples_compile_and_their_needs_are_told(name: str) -> None:
    report = compiled(EXAMPLES / name)
    assert report.status == "pass", report.reason
    assert "row_softmax: sm_80" in report.meaning
    assert "1024 bytes shared, no spills" in report.meaning


@needs_a_compiler
def test_a_compile_error_is_a_finding_with_file_and_line() -> None:
    report = compiled(EXAMPLES / "wrong_compile.cu")
    line = next(
        i for i, t in enumerate((EXAMPLES / "wrong_compile.cu").read_text().splitlines(), 1) if "- biggest" in t
    )
    (found,) = report.findings
    assert found.where == f"wrong_compile.cu:{line}"
    assert 'identifier "biggest" is undefined' in found.summary
    assert found.replays


@needs_a_compiler
@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("block = [256]", "block = [2048]", "too many threads"),
        ("block = [256]", 'block = [256]\nshared = "400 * N"', "too much shared memory"),
    ],
)
def test_a_launch_that_no_target_takes_is_found(tmp_path: Path, old: str, new: str, words: str) -> None:
    path = tmp_path / "candidate.cu"
    path.write_text((EXAMPLES / "right.cu").read_text().replace(old, new, 1))
    assert words in compiled(path).findings[0].summary


@needs_a_compiler
def test_without_a_gpu_the_verdict_is_incomplete_and_says_why() -> None:
    verdict, _ = check(PROBLEM, str(EXAMPLES / "right.cu"), seed=7)
    assert verdict.verdict == "incomplete"
    assert "CUDA C++ needs a GPU to run: tilewright check --device cuda" in verdict.reason
    assert {g.name for g in verdict.gates if g.status == "pass"} == {"task audit", "compile"}


@pytest.mark.skipif(not nvrtc(), reason="no NVRTC (extra cuda) or no ptxas")
@pytest.mark.parametrize("line", ["#include <curand_kernel.h>", "__host__ void launch() {}"])
def test_what_only_nvcc_takes_is_no_fault_of_the_kernel(tmp_path: Path, line: str) -> None:
    made = _cuda_compile._by_nvrtc(f"{line}\n{KERNEL}", "k.cu", "sm_90", ())

    class Exam:
        kernel = read(str(EXAMPLES / "right.cu"))

    assert not made.ok
    check = compile_gate._refused(Exam(), {"how": "file", "line": 1}, made.told())  # type: ignore[arg-type]
    assert not check.failed
    assert check.silent.startswith("NVRTC can't take what nvcc may:")


def test_no_gate_is_skipped_for_other_languages() -> None:
    class Exam:
        place = None
        kernel = read(str(ROOT / "examples" / "01_softmax" / "right.py"))

    assert untried(Exam(), gate("values")) is None  # type: ignore[arg-type]


def test_a_script_of_a_finding_is_refused_with_what_to_do_instead() -> None:
    sheet = TaskSheet(name="t", source="tilewright", path=PROBLEM)
    finding = Finding(cls="wrong", summary="wrong", case=CaseRecord(mode="values"), id="0123456789ab")
    with pytest.raises(Unsupported, match=r"no stand-alone script for CUDA C\+\+") as caught:
        render(finding, read(str(EXAMPLES / "right.cu")), sheet, lambda _: b"")
    assert "tilewright replay 0123456789ab" in str(caught.value.remedy)
