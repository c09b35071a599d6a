"""Functions of other packages, each taking a task's inputs in their order.

Nothing is added to what a package runs. Where its own autograd function would compare the incoming gradient with 1 on the
host, the part that computes is called directly, in its favour. What overwrites its inputs does so here too.
"""

from __future__ import annotations

from typing import Any

import torch


def torch_softmax_backward(dy, y):
    """What autograd runs in PyTorch."""
    return torch.ops.aten._softmax_backward_data(dy, y, -1, y.dtype)


def _settings(n: int) -> Any:
    from liger_kernel.ops.utils import calculate_settings

    return calculate_settings(n)


# --- Liger Kernel ---------------------------------------------------------------------------------------------------


def liger_softmax_backward(dy, y):
    from liger_kernel.ops import softmax

    block, warps = _settings(y.shape[-1])
    return softmax._softmax_backward(dy, y, block, warps, y.shape[-1] > block)


def liger_rms_norm(x, weight):
    from liger_kernel.transformers.functional import liger_rms_norm as f

    return f(x, weight, 1e-6)


def liger_rms_norm_backward(dy, x, scale, weight):
    from liger_kernel.ops import rms_norm as m

    mode = m._CASTING_MODE_LLAMA.value
    return m.rms_norm_backward(dy, x, weight, scale, 0.0, mode, *_settings(x.shape[-1]), False, None)


def liger_rms_norm_residual(x, residual, weight):
    from liger_kernel.transformers.functional import liger_fused_add_rms_norm as f

    return f(x, residual, weight, 1e-6)


def liger_rms_norm_residual_backward(dy, dtotal, total, scale, weight):
    from liger_kernel.ops import fused_add_rms_norm as m

    mode, settings = m._CASTING_MODE_LLAMA.value, _settings(total.shape[-1])
    dx, _, dw = m.fused_add_rms_norm_backward(dy, dtotal, total, weight, scale, 0.0, mode, *settings, 2, False)
    return dx, dw


def liger_layer_norm(x, weight, bias):
    from liger_kernel.transformers.functional import liger_layer_norm as f

    return f(x, weight, bias, 1e-5)


def liger_layer_norm_backward(dy, x, stats, weight, bias):
    from liger_kernel.ops import layer_norm as m

    return m.layer_norm_backward(dy, x, weight, bias, stats[:, 0], stats[:, 1])


def liger_group_norm(x, weight, bias):
    from liger_kernel.transformers.functional import liger_group_norm as f

    return f(x, weight, bias, x.shape[1], 32, 1e-5)


def liger_group_norm_backward(dy, x, stats, weight, bias):
    from liger_kernel.ops.group_norm import group_norm_backward

    mean, scale = (stats[:, i].reshape(x.shape[0], 32) for i in (0, 1))  # its kernel takes one stride for both
    return group_norm_backward(dy, x, weight, bias, mean, scale, x.shape[1], 32)


def liger_swiglu_backward(dy, gate, up):
    from liger_kernel.ops.swiglu import swiglu_backward

    return swiglu_backward(gate, up, dy)


def liger_swiglu_packed(x):
    from liger_kernel.ops.swiglu import swiglu_fused_gate_up_forward

    return swiglu_fused_gate_up_forward(x)[1]


def liger_swiglu_packed_backward(dy, x):
    from liger_kernel.ops.swiglu import swiglu_fused_gate_up_backward

    return swiglu_fused_gate_up_backward(x, dy)


def liger_geglu_backward(dy, gate, up):
    from liger_kernel.ops.geglu import geglu_backward

    return geglu_backward(gate, up, dy)


def liger_relu_squared_backward(dy, x):
    from liger_kernel.ops.relu_squared import relu_squared_backward

    return relu_squared_backward(x, dy)


def _doubled(cos, sin):
    return torch.cat((cos, cos), -1)[None], torch.cat((sin, sin), -1)[None]


def liger_rope(q, k, cos, sin):
    from liger_kernel.ops.rope import rope_forward

    return rope_forward(q.transpose(1, 2), k.transpose(1, 2), *_doubled(cos, sin))[:2]


def liger_rope_backward(dq, dk, cos, sin):
    from liger_kernel.ops.rope import rope_backward

    return rope_backward(dq.transpose(1, 2), dk.transpose(1, 2), *_doubled(cos, sin))


def liger_cross_entropy(logits, target):
    from liger_kernel.transformers.functional import liger_cross_entropy as f

    return f(logits, target).float()


def liger_cross_entropy_step(logits, target):
    from liger_kernel.ops.cross_entropy import cross_entropy_forward

    x = logits.detach().requires_grad_()
    with torch.no_grad():
        loss, *_, gradient = cross_entropy_forward(x, target, None, -100, 0.0, 0.0, "mean", None, False)
    return loss.float(), gradient.detach()


def liger_linear_cross_entropy(x, weight, target):
    from liger_kernel.ops.fused_linear_cross_entropy import fused_linear_cross_entropy_forward

    return fused_linear_cross_entropy_forward(x, weight, target, compute_gradients=False)[0].float()


def liger_linear_cross_entropy_step(x, weight, target):
    from liger_kernel.ops.fused_linear_cross_entropy import fused_linear_cross_entropy_forward

    found = fused_linear_cross_entropy_forward(x, weight, target, compute_gradients=True, weight_requires_grad=True)
    return found[0].float(), found[4], found[5]


def liger_kl_divergence(x, target):
    from liger_kernel.ops.kl_div import kldiv_forward_triton

    return kldiv_forward_triton(x, target, True, "batchmean", 1e-10).float()


def liger_kl_divergence_step(x, target):
    from liger_kernel.ops.kl_div import kldiv_backward_triton

    gradient = kldiv_backward_triton(target, torch.ones((), device=x.device), torch.empty_like(target), True)
    return liger_kl_divergence(x, target), gradient / x.shape[0]


def liger_js_divergence(x, target):
    return liger_js_divergence_step(x, target)[0]


def liger_js_divergence_step(x, target):
    from liger_kernel.ops.jsd import jsd_forward

    loss, gradient = jsd_forward(x, target, None, 0.5, -100, False)
    return loss.float(), gradient


def liger_linear_js_divergence(x, weight, teacher, teacher_weight):
    return liger_linear_js_divergence_step(x, weight, teacher, teacher_weight)[0]


def liger_linear_js_divergence_step(x, weight, teacher, teacher_weight):
    from liger_kernel.ops.fused_linear_jsd import fused_linear_jsd_forward

    found = fused_linear_jsd_forward(x, weight.detach().requires_grad_(), teacher, teacher_weight, None, 0.5, -100,
                                     False, 1.0)  # fmt: skip
    return found[0].float(), found[1], found[2]


# --- flash-linear-attention -----------------------------------------------------------------------------------------


def fla_rms_norm(x, weight):
    from fla.modules.norm.layernorm import layer_norm_fwd

    return layer_norm_fwd(x, weight, None, 1e-6, is_rms_norm=True)[0]


def fla_rms_norm_backward(dy, x, scale, weight):
    from fla.modules.norm.layernorm import layer_norm_bwd

    return layer_norm_bwd(dy, x, weight, None, None, scale, is_rms_norm=True)[:2]


def fla_rms_norm_residual(x, residual, weight):
    from fla.modules.norm.layernorm import layer_norm_fwd

    y, _, _, total = layer_norm_fwd(x, weight, None, 1e-6, residual=residual, is_rms_norm=True)
    return y, total


def fla_layer_norm(x, weight, bias):
    from fla.modules.norm.layernorm import layer_norm_fwd

    return layer_norm_fwd(x, weight, bias, 1e-5)[0]


def fla_swiglu_backward(dy, gate, up):
    from fla.modules.activations.ops import swiglu_fwdbwd

    return swiglu_fwdbwd(gate, up, dy)[:2]


# --- conch, cut-cross-entropy ---------------------------------------------------------------------------------------


def conch_rms_norm(x, weight):
    from conch.ops.normalization.rms_norm import rms_norm

    return rms_norm(x, weight, 1e-6)


def cut_linear_cross_entropy(x, weight, target):
    from cut_cross_entropy import linear_cross_entropy

    return linear_cross_entropy(x, weight, target).float()


def cut_linear_cross_entropy_step(x, weight, target):
    from cut_cross_entropy import linear_cross_entropy

    with torch.enable_grad():
        x, weight = x.detach().requires_grad_(), weight.detach().requires_grad_()
        loss = linear_cross_entropy(x, weight, target)
        gradients = torch.autograd.grad(loss, (x, weight))
    return loss.detach().float(), *gradients
