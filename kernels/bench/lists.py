"""Gradient lists of real models, as shapes."""


def llama3_8b_layer():
    hidden, ffn, kv = 4096, 14336, 1024
    return [
        (hidden, hidden),
        (kv, hidden),
        (kv, hidden),
        (hidden, hidden),
        (ffn, hidden),
        (ffn, hidden),
        (hidden, ffn),
        (hidden,),
        (hidden,),
    ]


def gpt2():
    d = 768
    layer = [
        (d,),
        (d,),
        (d, 3 * d),
        (3 * d,),
        (d, d),
        (d,),
        (d,),
        (d,),
        (d, 4 * d),
        (4 * d,),
        (4 * d, d),
        (d,),
    ]
    return [(50257, d), (1024, d)] + layer * 12 + [(d,), (d,)]


def small_150():
    """Returns shapes of biases, norms and adapters: 64 to 32,768 elements, all different."""
    shapes = []
    for i in range(150):
        rows = 2 + (i * 37) % 61
        columns = (16, 48, 64, 104, 128, 256, 512)[i % 7]
        shapes.append((rows, columns))
    return shapes


def even_rows(shapes, n):
    """Returns the shapes with each dim 0 rounded up to a multiple of n."""
    return [(-(-s[0] // n) * n, *s[1:]) for s in shapes]


LISTS = {
    "llama3-8b-layer": llama3_8b_layer,
    "gpt2": gpt2,
    "150-small": small_150,
}
