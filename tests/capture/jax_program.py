"""Functions for meshplan.jax_shardings on 8 devices: a feed-forward block with tensor parallel weights, its gradient, a loop over layers, and
single reshardings."""
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

MESH = Mesh(np.array(jax.devices()).reshape(2, 4), ("dp", "tp"))


def sharding(*parts):
    return NamedSharding(MESH, P(*parts))


def array(shape, *parts):
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=sharding(*parts))


def feed_forward(x, w1, w2):
    h = jax.nn.relu(x @ w1)
    h = jax.lax.with_sharding_constraint(h, sharding("dp", "tp"))
    return jax.lax.with_sharding_constraint(h @ w2, sharding(("dp", "tp"), None))


def loop(x, ws):
    def body(x, w):
        x = jax.lax.with_sharding_constraint(x, sharding("dp", "tp"))
        return jax.lax.with_sharding_constraint(x @ w, sharding("dp", None)), None
    return jax.lax.scan(body, x, ws)[0]


def identity(x):
    return x


def functions():
    x, w1, w2 = array((64, 128), "dp", None), array((128, 256), None, "tp"), array((256, 128), "tp", None)
    return [
        ("feed_forward", jax.jit(feed_forward, out_shardings=sharding(None, "tp")), (x, w1, w2)),
        ("gradient", jax.jit(jax.grad(lambda *a: feed_forward(*a).sum(), argnums=(1, 2)),
                             out_shardings=(sharding("dp", "tp"), sharding("tp", "dp"))), (x, w1, w2)),
        ("loop", jax.jit(loop), (array((64, 128), "dp", None), array((6, 128, 128), None, None, None))),
        ("swap", jax.jit(identity, out_shardings=sharding("tp", "dp")), (array((64, 64), "dp", "tp"),)),
        ("reorder", jax.jit(identity, out_shardings=sharding(("tp", "dp"))), (array((64, 64), ("dp", "tp")),)),
    ]
