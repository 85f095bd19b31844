"""Processes that are the ranks of one gloo world, for the tests of what needs PyTorch."""
import datetime
import importlib.util
import os
import sys
import tempfile
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))


def missing_torch():
    """Why these tests cannot run here; None where they can."""
    if importlib.util.find_spec("torch") is None:
        return "PyTorch is not importable here (tests/run --with-torch makes a place where it is)"
    import torch
    import torch.distributed as dist
    import torch.distributed.tensor._dtensor_spec as spec
    if not dist.is_available() or not dist.is_gloo_available():
        return "this PyTorch has no gloo"
    return None if hasattr(spec, "ShardOrderEntry") else f"PyTorch {torch.__version__} has no shard orders"


def _rank(rank, world, store, answers, body, arguments):
    import logging
    import torch
    import torch.distributed as dist
    torch.set_num_threads(1)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # a machine's own name need not resolve
    logging.getLogger("torch.distributed.tensor._redistribute").setLevel(logging.ERROR)  # advice
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world,
                            timeout=datetime.timedelta(seconds=120))
    try:
        value = body(rank, *arguments)
        dist.barrier()
        answers.put((rank, value, None))
    except BaseException:
        answers.put((rank, None, traceback.format_exc()))
    finally:
        dist.destroy_process_group()


def on_ranks(world, body, *arguments):
    """body(rank, *arguments) on `world` processes: the values by rank. AssertionError with the first
    failure's traceback."""
    import torch.multiprocessing as processes
    context = processes.get_context("spawn")
    answers = context.SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        store = os.path.join(folder, "store")
        ranks = [context.Process(target=_rank, args=(r, world, store, answers, body, arguments), daemon=True) for r in range(world)]
        for process in ranks:
            process.start()
        values, failed = {}, None
        while len(values) < world and failed is None:
            rank, value, error = answers.get()
            values[rank] = value
            failed = f"rank {rank}: {error}" if error else None
        for process in ranks:
            if failed:
                process.kill()
            process.join()
    if failed:
        raise AssertionError(failed)
    return [values[rank] for rank in range(world)]


def skipped(name):
    """True after saying so, where PyTorch is missing: the test exits with 77."""
    why = missing_torch()
    if why:
        print(f"{name}: NOT RUN, {why}", file=sys.stdout)
    return why is not None
