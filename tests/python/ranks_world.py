"""Processes that are the ranks of one world, for the tests of what needs PyTorch: of gloo, with tensors on the CPU; with MESHPLAN_TEST_WORLD=nccl
of NCCL, with tensors on a GPU, which all of them may share; "nccl bound" binds them to the device, from which PyTorch then splits groups."""
import datetime
import importlib.util
import os
import sys
import tempfile
import time
import traceback

WORLD = os.environ.get("MESHPLAN_TEST_WORLD", "gloo")
ON_GPU = WORLD.startswith("nccl")
BACKEND = "nccl" if ON_GPU else "gloo"
# NCCL refuses ranks that share a GPU unless each says that it is on a host of its own; then they talk by sockets, in small kernels that wait for
# each other on the GPU.
ON_ONE_GPU = {"NCCL_SOCKET_IFNAME": "lo", "NCCL_NET": "Socket", "NCCL_IB_DISABLE": "1", "NCCL_NVLS_ENABLE": "0", "NCCL_MAX_CTAS": "4",
              "NCCL_RAS_ENABLE": "0", "NCCL_BUFFSIZE": "1048576"}  # the default of 4 MiB a channel and peer adds up over many groups
_beside = None  # on NCCL the group of gloo for what the tests themselves say


def missing_torch():
    """Why these tests cannot run here; None where they can."""
    if importlib.util.find_spec("torch") is None:
        return "PyTorch is not importable here (tests/run --with-torch makes a place where it is)"
    import torch
    import torch.distributed as dist
    import torch.distributed.tensor._dtensor_spec as spec
    if WORLD not in ("gloo", "nccl", "nccl bound"):
        return f"MESHPLAN_TEST_WORLD is {WORLD!r}, not gloo, nccl or nccl bound"
    if not dist.is_available() or not dist.is_gloo_available():
        return "this PyTorch has no gloo"
    if ON_GPU and not dist.is_nccl_available():
        return "this PyTorch has no NCCL"
    if ON_GPU and not torch.cuda.is_available():
        return "PyTorch finds no CUDA device here"
    return None if hasattr(spec, "ShardOrderEntry") else f"PyTorch {torch.__version__} has no shard orders"


def device():
    """The type of the device on which this world's tensors are."""
    return "cuda" if ON_GPU else "cpu"


def barrier():
    """When it returns, every rank has done all that came before."""
    import torch
    import torch.distributed as dist
    if ON_GPU:
        torch.cuda.synchronize()
    dist.barrier(_beside)


def of_first(value):
    """Rank 0's, on every rank."""
    import torch.distributed as dist
    box = [value]
    dist.broadcast_object_list(box, 0, _beside)
    return box[0]


def of_all(value):
    """Every rank's, on every rank."""
    import torch.distributed as dist
    found = [None] * dist.get_world_size()
    dist.all_gather_object(found, value, _beside)
    return found


def _begin(rank, world, store, dies):
    global _beside
    import torch
    import torch.distributed as dist
    options = {"init_method": f"file://{store}", "rank": rank, "world_size": world, "timeout": datetime.timedelta(seconds=120)}
    if ON_GPU:
        for name, value in {**ON_ONE_GPU, "NCCL_HOSTID": f"rank{rank}"}.items():
            os.environ.setdefault(name, value)
        if dies is not None:  # waiting then ends with an error in the one who waits; by itself NCCL's watchdog ends the whole process
            os.environ["TORCH_NCCL_BLOCKING_WAIT"] = "1"
            options["timeout"] = datetime.timedelta(seconds=20)
        own = torch.device("cuda", rank % torch.cuda.device_count())
        torch.cuda.set_device(own)
        torch.set_default_device("cuda")
        if WORLD == "nccl bound":
            options["device_id"] = own
    dist.init_process_group(BACKEND, **options)
    if ON_GPU:
        _beside = dist.new_group(backend="gloo")


def _rank(rank, world, store, answers, body, arguments, dies):
    import logging
    import torch
    import torch.distributed as dist
    torch.set_num_threads(1)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # a machine's own name need not resolve
    logging.getLogger("torch.distributed.tensor._redistribute").setLevel(logging.ERROR)  # advice
    try:
        _begin(rank, world, store, dies)
        value = body(rank, *arguments)
        if dies is None:
            barrier()
        answers.put((rank, value, None))
    except BaseException:
        answers.put((rank, None, traceback.format_exc()))
    finally:
        if ON_GPU and dies is not None:
            os._exit(0)  # its groups have lost a rank: they would wait for it
        if dist.is_initialized():
            dist.destroy_process_group()


def _next_answer(answers, ranks, answered):
    """(rank, value, error) of the next rank that has one; a process that ended without is an error."""
    while answers.empty():
        gone = [rank for rank, process in enumerate(ranks) if rank not in answered and process.exitcode is not None]
        if gone and answers.empty():
            return gone[0], None, f"its process ended, exit code {ranks[gone[0]].exitcode}"
        time.sleep(0.01)
    return answers.get()


def on_ranks(world, body, *arguments, dies=None):
    """body(rank, *arguments) on `world` processes: the values by rank. AssertionError with the first
    failure's traceback. `dies`: a rank whose process the body ends; its value is None."""
    import torch.multiprocessing as processes
    context = processes.get_context("forkserver")  # they start with what is imported, in place of importing PyTorch each
    context.set_forkserver_preload(["torch.distributed.tensor", "torch.distributed.tensor.experimental", "torch._dynamo"])
    answers = context.SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        store = os.path.join(folder, "store")
        ranks = [context.Process(target=_rank, args=(r, world, store, answers, body, arguments, dies), daemon=True) for r in range(world)]
        for process in ranks:
            process.start()
        values, failed = {} if dies is None else {dies: None}, None
        while len(values) < world and failed is None:
            rank, value, error = _next_answer(answers, ranks, values)
            values[rank] = value
            failed = f"rank {rank}: {error}" if error else None
        for process in ranks:
            if failed:
                process.kill()
            process.join(60)
            if process.exitcode is None:
                failed = failed or "a rank did not end in a minute after its answer"
                process.kill()
    if failed:
        raise AssertionError(failed)
    return [values[rank] for rank in range(world)]


class Counted:
    """What a followed plan really asks torch.distributed for on this rank: `messages` and their `bytes` that arrive, `collectives`, and
    `collective_bytes`, what they bring, padding included."""

    def __init__(self):
        import meshplan.execute
        import torch.distributed as dist
        self.dist, self.execute = dist, meshplan.execute
        self.messages = self.bytes = self.collectives = self.collective_bytes = 0

    def _batch(self, operations):
        for operation in operations:
            if operation.op is self.dist.irecv:
                self.messages += 1
                self.bytes += operation.tensor.numel() * operation.tensor.element_size()
        return self._own["batch_isend_irecv"](operations)

    def _collective(self, name, brought):
        def call(tensor, *arguments):
            self.collectives += 1
            ranks = self.dist.get_world_size(arguments[-1])
            self.collective_bytes += brought(tensor.numel() * tensor.element_size(), ranks)
            return self._own[name](tensor, *arguments)
        return call

    def __enter__(self):
        import types
        execute, funcol = self.execute, self.execute.funcol
        self._own = {"batch_isend_irecv": self.dist.batch_isend_irecv, "ALL_GATHER": execute.ALL_GATHER, "REDUCE_SCATTER": execute.REDUCE_SCATTER,
                     "all_reduce": funcol.all_reduce, "funcol": funcol}
        self.dist.batch_isend_irecv = self._batch
        execute.ALL_GATHER = self._collective("ALL_GATHER", lambda size, ranks: size * (ranks - 1))
        execute.REDUCE_SCATTER = self._collective("REDUCE_SCATTER", lambda size, ranks: size // ranks * (ranks - 1))
        execute.funcol = types.SimpleNamespace(  # of this module alone: what PyTorch does by itself is not counted
            all_reduce=self._collective("all_reduce", lambda size, ranks: -(-2 * size * (ranks - 1) // ranks)),
            AsyncCollectiveTensor=funcol.AsyncCollectiveTensor)
        return self

    def __exit__(self, *error):
        self.dist.batch_isend_irecv = self._own["batch_isend_irecv"]
        for name in ("ALL_GATHER", "REDUCE_SCATTER", "funcol"):
            setattr(self.execute, name, self._own[name])

    def check(self, summary):
        """AssertionError where the summary's steps, times how often they ran, are other messages or bytes; bytes of collectives that are
        planned but did not come to this rank."""
        together = [step for step in summary.steps() if step.route.op in self.execute.COLLECTIVES]
        sent = [step for step in summary.steps() if step.route.op not in self.execute.COLLECTIVES]
        planned = (sum(step.times * step.route.messages for step in sent), sum(step.times * step.route.wire_bytes for step in sent),
                   sum(step.times for step in together))
        counted = (self.messages, self.bytes, self.collectives)
        assert counted == planned, f"(messages, their bytes, collectives): {counted} counted, {planned} planned"
        # The plan has what the rank with the most gets: a rank of a smaller group gets less.
        bound = sum(step.times * step.route.wire_bytes for step in together)
        assert self.collective_bytes <= bound, f"collectives brought {self.collective_bytes} bytes, {bound} planned"
        return bound - self.collective_bytes


def skipped(name):
    """True after saying so, where PyTorch is missing: the test exits with 77."""
    why = missing_torch()
    if why:
        print(f"{name}: NOT RUN, {why}", file=sys.stdout)
    return why is not None
