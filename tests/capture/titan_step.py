"""One training step of torchtitan's own models under its own parallelisms: forward, loss, backward, gradient norm and clipping.

usage: titan_step.py MODEL FLAVOR [--replicate N] [--tp N] [--cp N] [--ep N] [--layers N] [--backend partial_dtensor|full_dtensor|spmd_types]
e.g.   titan_step.py llama3 70B --replicate 4 --tp 8
"""
import argparse
import importlib

import torch
import torch.distributed as dist
from torchtitan.components.loss import cross_entropy_loss
from torchtitan.config import CompileConfig, ParallelismConfig, TrainingConfig
from torchtitan.distributed import ParallelDims, full_dtensor, utils as titan_utils
from torchtitan.models.common.attention import ScaledDotProductAttention
from torchtitan.trainer import Trainer

try:
    from meshplan.capture import phase
except ImportError:
    def phase(name):
        pass


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("flavor")
    for name in ("replicate", "tp", "cp", "ep"):
        parser.add_argument("--" + name, type=int, default=1)
    parser.add_argument("--layers", type=int)
    parser.add_argument("--sequence", type=int, default=8192)
    parser.add_argument("--backend", default="partial_dtensor")
    given = parser.parse_args()

    parallelism = ParallelismConfig(data_parallel_replicate_degree=given.replicate, tensor_parallel_degree=given.tp,
                                    context_parallel_degree=given.cp, expert_parallel_degree=given.ep, spmd_backend=given.backend)
    titan_utils.set_spmd_backend(given.backend)
    training = TrainingConfig(local_batch_size=1, seq_len=given.sequence, disable_cuda_graphs=True)
    spec = importlib.import_module("torchtitan.models." + given.model).model_registry(given.flavor, attn_backend="flex")
    config = spec.model
    if given.layers:
        config.layers = config.layers[:given.layers]
    for layer in config.layers:  # plain attention: it is local to a head, and needs no masks and no compiler
        layer.attention.inner_attention = ScaledDotProductAttention.Config()
    config.update_from_config(config=Trainer.Config(model_spec=spec, parallelism=parallelism, training=training))
    dims = ParallelDims.from_config(parallelism, dist.get_world_size())
    dims.build_mesh()
    with torch.device("meta"):
        model = config.build()
    model = spec.parallelize_fn(model, parallel_dims=dims, training=training, parallelism=parallelism, compile_config=CompileConfig(),
                                ac_config=None, dump_folder="")
    model.to_empty(device="cpu")
    model.train()
    tokens = torch.zeros(1, given.sequence // given.cp, dtype=torch.int64)
    labels = tokens
    if given.backend == "full_dtensor":
        tokens, labels, _ = full_dtensor.parallelize_inputs(dims, tokens, tokens, {})
    with titan_utils.get_spmd_context(parallel_dims=dims, spmd_typechecking=False)():
        logits = model(tokens)
        vocabulary = logits.shape[-1] * (given.tp if given.backend == "spmd_types" else 1)
        loss = cross_entropy_loss(logits, labels, global_vocab_size=vocabulary)
        phase("backward")
        loss.backward()
    phase("grad_norm")
    titan_utils.clip_grad_norm_(list(model.parameters()), 1.0, foreach=True, ep_enabled=dims.ep_enabled)
    phase(None)


if __name__ == "__main__":
    main()
