"""What resharding_test.py runs on 4 processes whose ranks ask for different tensors, or name the same ones differently."""
import time
import unittest

import ranks_world


def disagreeing(rank):
    """Ranks that ask for different tensors: an error on all of them, at first always, later where PyTorch compares collectives each time."""
    import meshplan
    import torch
    import torch.distributed as dist
    from resharding_test import check, empty_like, laid_out, nowhere, whole
    from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
    from torch.distributed.tensor import DTensor, Replicate as R, Shard as S
    mesh = init_device_mesh(ranks_world.device(), (4,), mesh_dim_names=("x",))
    data, ways = whole((8, 8), torch.float32, 9), [([S(0)], [S(1)]), ([S(1)], [S(0)])]
    ask = lambda way: meshplan.reshard(laid_out(data, mesh, way[0]), target := empty_like(data, mesh, way[1])) and target  # noqa: E731

    def differ(what, *words):
        with unittest.TestCase().assertRaisesRegex(RuntimeError, "^reshard: the ranks do not ask for the same tensors in the same order") as caught:
            what()
        assert (len(str(caught.exception)) > 72) == bool(words) and all(word in str(caught.exception) for word in words), caught.exception

    # A part of a mesh, which is other ranks in other processes.
    grid = init_device_mesh(ranks_world.device(), (2, 2), mesh_dim_names=("dp", "tp"))
    on_grid, on_part = laid_out(data, grid, [S(0), S(0)]), empty_like(data, grid["tp"], [S(1)])
    on_whole = DTensor.from_local(on_part.to_local(), grid, [R(), S(1)], run_check=False)  # as the message advises
    here, why = f"is on tp 2 of ranks {rank // 2 * 2} {rank // 2 * 2 + 1} in this", "other ranks of dp 2 x tp 2 of ranks 0 1 2 3 in others; ask for"
    differ(lambda: meshplan.reshard({"v": on_grid, "w": on_grid}, {"v": empty_like(data, grid, [S(1), S(1)]), "w": on_part}), f": w after {here}", why)
    differ(lambda: meshplan.reshard(on_part, on_grid), f": 0 before {here}", why)
    # Two parts, of which each process has others: its group would have other ranks, too, and each would wait for others in its own.
    column = f"0 before is on dp 2 of ranks {rank % 2} {rank % 2 + 2} in this"
    for late in (0, 3):
        time.sleep(0.3 if rank == late else 0)
        differ(lambda: meshplan.reshard(laid_out(data, grid["dp"], [S(0)]), empty_like(data, grid["tp"], [S(1)])), f": {column}", why)
    check({"w": laid_out(data, grid["tp"], [S(0)])}, {"w": empty_like(data, grid["tp"], [S(1)])}, {"w": data}, {"w": (grid["tp"], [S(1)])})
    # From the ranks of one part to those of another, which each process names by their ranks where it is of neither: one question.
    def part(ranks):
        listed = torch.tensor(ranks, device="cpu")
        return grid["tp"] if grid["tp"].mesh.tolist() == ranks else DeviceMesh(ranks_world.device(), listed, mesh_dim_names=("tp",))

    parts = [part([0, 1]), part([2, 3])]
    source, target = (laid_out(data * (part is parts[0]), part, [R()]) if part.get_coordinate() is not None else nowhere(data, part) for part in parts)
    meshplan.reshard(source, target)
    assert rank < 2 or torch.equal(target._local_tensor, data), target
    check({"v": on_grid}, {"v": on_whole}, {"v": data}, {"v": (grid, [R(), S(1)])})
    check({"w": on_whole}, {"w": empty_like(data, grid, [S(0), S(0)])}, {"w": data}, {"w": (grid, [S(0), S(0)])})
    differ(lambda: ask(ways[rank % 2]))
    for _ in range(2):
        assert all(torch.equal(ask(way)._local_tensor, laid_out(data, mesh, way[1])._local_tensor) for way in ways)
        dist.set_debug_level(dist.DebugLevel.DETAIL)
    differ(lambda: ask(ways[rank % 2]))
    return True
