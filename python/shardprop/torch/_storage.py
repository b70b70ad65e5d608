"""Operators whose derivative reads how their matrix is stored.

`torch.linalg.det` factors the transpose of a matrix that is contiguous. Its derivative
asks the DTensor whether it was, but a shard of a slice is contiguous although the slice
is not, so that the gradient would be that of the transpose. Their local matrix is
therefore contiguous exactly if the DTensor is.
"""

import torch

aten = torch.ops.aten

_READ_BY_DERIVATIVE = {
    aten._linalg_det.default,
    aten._linalg_slogdet.default,
    aten._linalg_solve_ex.default,
}


def kernel_of(op, specs):
    """Returns the function that the ranks run for `op`, whose operands have these
    specs; None if it is the operator itself."""
    if op not in _READ_BY_DERIVATIVE:
        return None
    meta = specs[0].tensor_meta
    whole = torch.empty_strided(meta.shape, meta.stride, dtype=meta.dtype, device="meta")
    is_contiguous = whole.is_contiguous()

    def run(matrix, *args, **kwargs):
        if matrix.is_contiguous() != is_contiguous:
            matrix = matrix.contiguous() if is_contiguous else matrix.mT.contiguous().mT
        return op(matrix, *args, **kwargs)

    return run
