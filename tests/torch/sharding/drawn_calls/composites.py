"""Operators that PyTorch composes of others, as plain exports leave them."""

import torch

from .drawer import broadcasts
from .families import family

_REALS = (torch.float64, torch.float32)


def _real(d):
    return d.rng.choice(_REALS)


# --- Products ---


@family("tensordot")
def tensordot(d):
    dtype, count = _real(d), d.rng.randint(0, 2)
    shared = [d.size(0, 7) for _ in range(count)]
    given = {}
    for name in ("self", "other"):
        own = [d.size(0, 6) for _ in range(d.rng.randint(0, 2))]
        order = d.rng.sample(range(count + len(own)), count + len(own))
        sizes = shared + own
        given[name] = d.tensor([sizes[i] for i in order], dtype)
        rank = len(order)
        given[f"dims_{name}"] = [
            order.index(i) - (rank if d.chance(0.3) else 0) for i in range(count)
        ]
    return given


@family("linalg_vecdot")
def vecdot(d):
    dtype, shape = _real(d), d.shape(d.rng.randint(1, 3))
    one, other = d.tensor(shape, dtype), d.tensor(broadcasts(d.rng, shape), dtype)
    given = (one, other) if d.chance(0.5) else (other, one)
    return {"x": given[0], "y": given[1], "dim": d.dim(len(shape))}


@family("inner")
def inner(d):
    dtype, k = d.dtype(), d.size(0, 7)
    one, other = (d.tensor((*d.shape(d.rng.randint(0, 1)), k), dtype) for _ in range(2))
    if d.chance(0.2):
        other = d.tensor((), d.dtype())
    return {"self": one, "other": other}


@family("kron")
def kron(d):
    shapes = ([min(n, 5) for n in d.shape(d.rng.randint(0, 2))] for _ in range(2))
    one, other = (d.tensor(shape).contiguous() for shape in shapes)
    return {"self": one, "other": other}


@family("linalg_multi_dot", "chain_matmul")
def chain(d):
    dtype, count = _real(d), d.rng.randint(2, 4)
    sizes = [d.size(1, 7) for _ in range(count + 1)]
    factors = [d.tensor(sizes[i : i + 2], dtype) for i in range(count)]
    if d.base == "linalg_multi_dot":
        if d.chance(0.3):
            factors[0] = d.tensor(sizes[1:2], dtype)
        if d.chance(0.3):
            factors[-1] = d.tensor(sizes[-2:-1], dtype)
    return {"tensors": factors, "matrices": factors}


# --- Joins, cuts and grids ---


@family("hstack", "vstack", "dstack", "column_stack", "row_stack")
def stacked(d):
    dim = {"hstack": 1, "column_stack": 1, "dstack": 2}.get(d.base, 0)
    shape = list(d.shape(d.rng.randint(0, 3)))
    tensors = []
    for _ in range(d.rng.randint(1, 3)):
        if dim < len(shape) and len(shape) > 1:
            shape[dim] = d.size(0, 8)
        tensors.append(d.tensor(shape))
    return {"tensors": tensors}


@family("broadcast_tensors")
def broadcast_tensors(d):
    shape = d.shape()
    count = d.rng.randint(1, 3)
    return {"tensors": [d.tensor(broadcasts(d.rng, shape)) for _ in range(count)]}


@family("meshgrid", "cartesian_prod")
def vectors(d):
    dtype, count = d.dtype(), d.rng.randint(1, 3)
    shapes = [(d.size(0, 7),) for _ in range(count)]
    if d.base == "meshgrid" and d.chance(0.2):
        shapes[0] = ()
    return {
        "tensors": [d.tensor(shape, dtype) for shape in shapes],
        "indexing": d.rng.choice(("ij", "xy")),
    }


@family("tensor_split", "hsplit", "vsplit", "dsplit")
def cut(d):
    dim = {"hsplit": 1, "vsplit": 0, "dsplit": 2}.get(d.base)
    shape = list(d.shape(d.rng.randint(1 if dim is None else dim + 1, 3)))
    if dim is None:
        dim = d.dim(len(shape))
    sections = d.rng.randint(1, 4)
    if d.base != "tensor_split":
        shape[min(dim, len(shape) - 1)] = sections * d.rng.randint(0, 3)
    places = sorted(d.rng.randint(0, shape[min(dim, len(shape) - 1)])
                    for _ in range(d.rng.randint(0, 3)))  # fmt: skip
    return {
        "self": d.tensor(shape),
        "sections": sections,
        "indices": places,
        "tensor_indices_or_sections": torch.tensor(places, dtype=torch.int64),
        "dim": dim,
    }


@family("fft_fftshift", "fft_ifftshift", "fliplr", "flipud")
def shifted(d):
    x = d.tensor(d.shape(d.rng.randint(2, 3)), distinct=True)
    return {"self": x, "dim": d.dims(x.dim()) if d.chance(0.6) else None}


@family("diag", "diagflat", "fill_diagonal_")
def of_diagonals(d):
    ranks = {"diag": (1, 2), "diagflat": (0, 1, 2), "fill_diagonal_": (2,)}
    x = d.tensor(d.shape(d.rng.choice(ranks.get(d.base, (2, 3)))))
    offset = d.rng.randint(-3, 3)
    return {"self": x, "A": x, "offset": offset, "diagonal": offset, "dim1": -2, "dim2": -1}


@family("channel_shuffle", "native_channel_shuffle")
def channel_shuffle(d):
    groups = d.rng.randint(1, 3)
    shape = (d.size(1, 6), groups * d.rng.randint(1, 3), d.size(1, 4), d.size(1, 4))
    x = d.tensor(shape, _real(d)).contiguous()
    return {"self": x, "groups": groups}


# --- Statistics ---


@family("quantile", "nanquantile")
def quantile(d):
    dtype, shape = _real(d), d.shape(d.rng.randint(1, 3), 1)
    scalar = d.op.endswith((".scalar", ".scalar_out"))
    many = d.rng.choice(((), (d.rng.randint(1, 3),)))
    q = 0.25 if scalar else torch.full(many, 0.25, dtype=dtype)
    return {
        "self": d.tensor(shape, dtype),
        "q": q,
        "dim": d.dim(len(shape)) if d.chance(0.7) else None,
        "keepdim": d.chance(0.5),
        "interpolation": d.rng.choice(("linear", "lower", "nearest")),
    }


@family("trapezoid", "trapz", "cumulative_trapezoid")
def trapezoid(d):
    dtype, shape = _real(d), d.shape(d.rng.randint(1, 3))
    dim = d.dim(len(shape))
    x = d.tensor(shape if d.chance(0.5) else (shape[dim],), dtype)
    return {"y": d.tensor(shape, dtype), "x": x, "dx": 0.5, "dim": dim}


@family("linalg_norm", "linalg_matrix_norm", "frobenius_norm", "nuclear_norm")
def of_matrices(d):
    x = d.tensor(d.shape(d.rng.randint(2, 3), 1), _real(d))
    dims = d.dims(x.dim(), 2)
    if d.base == "linalg_norm" and d.chance(0.4):
        dims = d.dims(x.dim(), 1) if d.chance(0.5) else None
    text = "fro" if dims is None or len(dims) == 2 else 2
    order = text if "str" in d.op else d.rng.choice((1, 2))
    if dims is None and "str" not in d.op:
        order = None
    return {"self": x, "dim": dims, "ord": order, "keepdim": d.chance(0.5),
            "dtype": None}  # fmt: skip


@family("cosine_similarity", "pairwise_distance", "dist")
def between_rows(d):
    dtype, shape = _real(d), d.shape(d.rng.randint(1, 3), 1)
    one = d.tensor(shape, dtype)
    other = d.tensor(broadcasts(d.rng, shape), dtype)
    given = {"x1": one, "x2": other, "self": one, "other": other}
    return given | {"dim": d.dim(len(shape)), "p": d.rng.choice((1.0, 2.0))}


@family("triplet_margin_loss", "cosine_embedding_loss", "margin_ranking_loss")
def of_samples(d):
    dtype, shape = _real(d), d.shape(d.rng.randint(1, 2), 1)
    rows = [d.tensor(shape, dtype) for _ in range(3)]
    names = ("anchor", "positive", "negative", "input1", "input2")
    given = dict(zip(names, rows + rows[:2], strict=True))
    of_rows = d.base == "cosine_embedding_loss"
    target = d.integers(shape[:-1] if of_rows else shape, 0, 2) * 2.0 - 1
    return given | {
        "target": target.to(dtype),
        "p": 2.0,
        "reduction": d.rng.randint(0, 2),
    }


@family("mse_loss", "mse_loss_backward", "smooth_l1_loss", "smooth_l1_loss_backward",
        "huber_loss", "huber_loss_backward", "soft_margin_loss",
        "soft_margin_loss_backward", "l1_loss", "kl_div")  # fmt: skip
def of_pairs(d):
    return {"reduction": d.rng.randint(0, 2)}


@family("hinge_embedding_loss", "poisson_nll_loss")
def of_elements(d):
    dtype, shape = _real(d), d.shape()
    x = d.tensor(shape, dtype)
    target = d.integers(shape, 0, 2) * 2.0 - 1
    if d.base == "poisson_nll_loss":
        x, target = x.abs() + 0.25, target + 2
    return {
        "self": x,
        "input": x,
        "target": target.to(dtype),
        "reduction": d.rng.randint(0, 2),
        "log_input": d.chance(0.5),
        "full": d.chance(0.5),
        "eps": 1e-8,
    }


@family("block_diag")
def block_diag(d):
    shapes = [d.shape(d.rng.randint(0, 2)) for _ in range(d.rng.randint(1, 3))]
    return {"tensors": [d.tensor([min(n, 5) for n in s]) for s in shapes]}


_LENGTHS = ("input_lengths", "target_lengths")


@family("ctc_loss")
def ctc_loss(d):
    dtype = _real(d)
    t, n, c, s = d.rng.randint(4, 6), d.size(1, 7), d.rng.randint(2, 4), 2
    log_probs = d.tensor((t, n, c), dtype).log_softmax(-1)
    lengths = torch.full((n,), t), torch.full((n,), s)
    if d.op.endswith(".IntList"):
        lengths = [t] * n, [s] * n
    return {
        "log_probs": log_probs,
        "targets": d.integers((n, s), 1, c),
        "input_lengths": lengths[0],
        "target_lengths": lengths[1],
        "blank": 0,
        "reduction": d.rng.randint(0, 2),
        "zero_infinity": False,
    }


@family("_ctc_loss", "_ctc_loss_backward")
def ctc_kernel(d):
    given = ctc_loss(d)
    del given["reduction"]
    samples, longest = given["targets"].shape
    # All of one length: of shorter ones the kernel leaves paths unwritten.
    given["target_lengths"] = torch.full((samples,), d.rng.randint(1, longest))
    if "Tensor" not in d.op:
        given |= {name: given[name].tolist() for name in _LENGTHS}
    if "backward" in d.base:
        loss, paths = torch.ops.aten._ctc_loss(**given)
        grad = d.tensor(loss.shape, loss.dtype)
        given |= {"grad": grad, "neg_log_likelihood": loss, "log_alpha": paths}
    return given


# --- Signals ---


@family("stft")
def stft(d):
    dtype, n = _real(d), d.rng.choice((4, 5, 8))
    batch = (d.size(1, 7),) if d.chance(0.8) else ()
    window = d.rng.choice((n, n - 1))
    return {
        "self": d.tensor((*batch, d.rng.randint(16, 24)), dtype).contiguous(),
        "n_fft": n,
        "hop_length": d.rng.choice((None, 2, 3)),
        "win_length": window,
        "window": d.tensor((window,), dtype).contiguous(),
        "center": d.chance(0.6),
        "pad_mode": "reflect",
        "onesided": d.rng.choice((None, True, False)),
        "return_complex": d.chance(0.8),
        "align_to_window": None,
    }


@family("istft")
def istft(d):
    dtype, n = _real(d), d.rng.choice((4, 8))
    batch = (d.size(1, 7),) if d.chance(0.8) else ()
    kind = torch.complex128 if dtype == torch.float64 else torch.complex64
    frames = d.tensor((*batch, n // 2 + 1, d.rng.randint(4, 6)), kind).contiguous()
    return {
        "self": frames,
        "n_fft": n,
        "hop_length": n // 4,
        "win_length": n,
        "window": torch.ones(n, dtype=dtype) if d.chance(0.5) else None,
        "center": True,
        "onesided": True,
        "length": None,
        "return_complex": False,
    }


# --- Weights by direction and length, and layers as one operator ---


@family("_weight_norm", "_weight_norm_interface", "_weight_norm_interface_backward",
        "_weight_norm_differentiable_backward", "norm_except_dim")  # fmt: skip
def weight_norm(d):
    # The kernels divide by the count of rows or of columns: both are there.
    dtype, shape = _real(d), d.shape(d.rng.randint(2, 3), 1)
    v = d.tensor(shape, dtype).contiguous() + 0.125
    rank = len(shape)
    dims = (0, rank - 1) if any(part in d.base for part in ("interface", "differentiable")) else range(rank)
    dim = d.rng.choice(tuple(dims))
    sizes = [n if i == dim else 1 for i, n in enumerate(shape)]
    g = d.tensor(sizes, dtype).contiguous()
    given = {"v": v, "g": g, "dim": dim, "pow": 2}
    if d.base.endswith("backward"):
        _, norms = torch.ops.aten._weight_norm_interface(v, g, dim)
        grad = d.tensor(shape, dtype).contiguous()
        given |= {"grad_w": grad, "saved_v": v, "saved_g": g, "saved_norms": norms}
    return given


@family("_embedding_bag_backward", "_embedding_bag_dense_backward",
        "_embedding_bag_per_sample_weights_backward")  # fmt: skip
def bag_gradient(d):
    dtype, rows, count = _real(d), d.size(1, 7), d.size(1, 8)
    starts = sorted(d.rng.randint(0, count) for _ in range(d.rng.randint(1, 4)))
    offsets = torch.tensor([0, *starts[1:]])
    mode = 0 if "sample" in d.base else d.rng.randint(0, 2)
    weight = d.tensor((rows, d.size(1)), dtype).contiguous()
    indices = d.index((count,), rows, negative=False).long()
    # With weights, as the gradient is asked for: then bags are noted.
    padding = d.rng.choice((-1, -1, 0, rows - 1))
    given = torch.ops.aten._embedding_bag(
        weight, indices, offsets, False, mode, False,
        d.tensor((count,), dtype).contiguous() if mode == 0 else None,
        padding_idx=padding,
    )  # fmt: skip
    return {
        "grad": d.tensor(given[0].shape, dtype).contiguous(),
        "weight": weight,
        "indices": indices,
        "offsets": offsets,
        "offset2bag": given[1],
        "bag_size": given[2],
        "maximum_indices": given[3],
        "num_weights": rows,
        "scale_grad_by_freq": d.chance(0.2),
        "mode": mode,
        "sparse": False,
        "per_sample_weights": None,
        "padding_idx": padding,
    }


@family("_transformer_encoder_layer_fwd")
def encoder_layer(d):
    dtype = _real(d)
    heads = d.rng.choice((1, 2))
    b, t, e, f = d.size(1, 7), d.size(1, 5), 4 * heads, 3

    def made(*shape):
        return d.tensor(shape, dtype).contiguous() / 4

    masks = (None, d.integers((b, t), 0, 1) == 1, d.integers((t, t), 0, 1) == 1)
    kind = d.rng.randint(0, 2)
    return {
        "src": made(b, t, e),
        "embed_dim": e,
        "num_heads": heads,
        "qkv_weight": made(3 * e, e),
        "qkv_bias": made(3 * e),
        "proj_weight": made(e, e),
        "proj_bias": made(e),
        "use_gelu": d.chance(0.5),
        "norm_first": d.chance(0.5),
        "eps": 1e-5,
        "norm_weight_1": made(e),
        "norm_bias_1": made(e),
        "norm_weight_2": made(e),
        "norm_bias_2": made(e),
        "ffn_weight_1": made(f, e),
        "ffn_bias_1": made(f),
        "ffn_weight_2": made(e, f),
        "ffn_bias_2": made(e),
        "mask": masks[kind],
        "mask_type": {0: None, 1: 1, 2: 0}[kind],
    }


@family("_native_multi_head_attention")
def heads(d):
    given = encoder_layer(d)
    given |= {name: given["src"] for name in ("query", "key", "value")}
    needed = d.chance(0.5)
    return given | {
        "num_head": given["num_heads"],
        "need_weights": needed,
        "average_attn_weights": d.chance(0.5),
        "mask": None,
        "mask_type": None,
    }


# --- Numbers rounded as if quantised ---


@family(
    "fake_quantize_per_tensor_affine",
    "fake_quantize_per_tensor_affine_cachemask",
    "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams",
    "fake_quantize_per_channel_affine",
    "fake_quantize_per_channel_affine_cachemask",
)
def fake_quantize(d):
    shape = d.shape(d.rng.randint(1, 3))
    x = d.tensor(shape, torch.float32)
    given = {"self": x, "quant_min": -8, "quant_max": 7}
    if "channel" in d.base:
        axis = d.rng.randrange(len(shape))
        count = shape[axis]
        return given | {
            "scale": torch.full((count,), 0.5),
            "zero_point": d.integers((count,), -2, 3).to(torch.int32),
            "axis": axis,
        }
    if "qparams" in d.op:
        return given | {
            "scale": torch.tensor([0.5]),
            "zero_point": torch.tensor([1], dtype=torch.int32),
            "fake_quant_enabled": torch.tensor([1], dtype=torch.int64),
        }
    return given | {"scale": 0.5, "zero_point": 1}


# --- Windows and places ---


@family("hann_window", "hamming_window", "blackman_window", "bartlett_window",
        "kaiser_window")  # fmt: skip
def window(d):
    return {"window_length": d.rng.randint(1, 9), "dtype": d.rng.choice((None, *_REALS))}


@family("fft_fftfreq", "fft_rfftfreq")
def frequencies(d):
    return {"n": d.rng.randint(1, 9), "d": 0.5, "dtype": d.rng.choice((None, *_REALS))}


@family("range")
def inclusive_range(d):
    start = d.rng.choice((-1.0, 0.0, 2.0))
    return {
        "start": start,
        "end": start + d.rng.randint(0, 6),
        "step": d.rng.choice((1.0, 2.0)),
        "dtype": d.rng.choice((None, *_REALS)),
    }


# --- Matrices ---


def _regular(d, batch, n, dtype):
    noise = d.values((*batch, n, n), torch.float64) / 8
    steps = torch.arange(1, n + 1, dtype=torch.float64)
    return (noise + torch.diag(steps * (n + 2))).to(dtype)


@family("lu_unpack", "lu_solve")
def by_lu(d):
    batch, n, dtype = d.shape(d.rng.randint(0, 2)), d.rng.randint(1, 4), _real(d)
    factors, pivots = torch.linalg.lu_factor(_regular(d, batch, n, dtype))
    right = d.tensor((*batch, n, 2), dtype)
    return {
        "self": right,
        "LU_data": factors,
        "LU_pivots": pivots,
        "unpack_data": d.chance(0.7),
        "unpack_pivots": d.chance(0.7),
    }


@family("svd", "qr", "pinverse", "linalg_cond", "linalg_matrix_rank")
def of_any_matrices(d):
    m, n, dtype = d.rng.randint(1, 4), d.rng.randint(1, 4), _real(d)
    batch = d.shape(d.rng.choice((0, 1, 1, 2)))
    made = _regular(d, batch, max(m, n), dtype)[..., :m, :n].contiguous()
    small = torch.full(batch, 1e-6, dtype=dtype)
    tensors = "tensor" in d.op
    if tensors and d.chance(0.15):
        made = made[..., :0, :]
    return {
        "self": made,
        "input": made,
        "some": d.chance(0.5),
        "compute_uv": d.chance(0.7),
        "p": None if ".p_str" not in d.op else "fro",
        "tol": small if tensors else 1e-6,
        "atol": small if tensors else 1e-6,
        "rtol": small if tensors else 1e-6,
        "hermitian": False,
        "rcond": 1e-6,
    }


@family("linalg_solve_ex")
def solve_ex(d):
    batch, n, dtype = d.shape(d.rng.randint(0, 2)), d.rng.randint(1, 4), _real(d)
    left = d.chance(0.7)
    shape = (*batch, n, 2) if left else (*batch, 2, n)
    return {
        "A": _regular(d, batch, n, dtype),
        "B": d.tensor(shape, dtype),
        "left": left,
        "check_errors": False,
    }


@family("linalg_vander", "vander")
def vander(d):
    shape = d.shape(d.rng.randint(1, 2), 1)
    return {"x": d.tensor(shape, _real(d)), "N": d.rng.choice((None, 2, 3))}


@family("conv_tbc")
def conv_tbc(d):
    dtype = _real(d)
    k, i, o = d.rng.randint(1, 3), d.size(1, 4), d.size(1, 4)
    x = d.tensor((d.rng.randint(3, 6), d.size(1), i), dtype).contiguous()
    return {
        "self": x,
        "weight": d.tensor((k, i, o), dtype).contiguous(),
        "bias": d.tensor((o,), dtype).contiguous(),
        "pad": d.rng.randint(0, 1),
    }
