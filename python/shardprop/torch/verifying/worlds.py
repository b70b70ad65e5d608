"""Simulation runs functions on simulated ranks. Each rank has its own copy of the state
that PyTorch keeps once for each process.

The state of a rank is its process groups, its random numbers and the environment
variables of its launcher. PyTorch's own variables are replaced while the simulation
runs.
"""

import contextlib
import os
import random
import sys
import threading
from collections.abc import Iterator
from typing import Any, Callable, Optional

import numpy as np
import torch
import torch.distributed as dist
import torch.distributed.device_mesh as device_mesh
import torch.nn.functional as F
from torch.distributed import distributed_c10d
from torch.distributed.tensor import DTensor

from ..._error import Error
from .collectives import Call, Meeting, Ran
from .dropout import dropout_within_functions
from .groups import Mail, SimulatedGroup
from .noise import coarser
from .own_state import OwnState
from .places import user_place
from .turns import Turns

_BACKEND = "shardprop"


class _World:
    """A _World has the attributes of c10d's own state of a process."""

    def __init__(self) -> None:
        self.default_pg = None
        self.pg_map: dict = {}
        self.pg_names: dict = {}
        self.pg_group_ranks: dict = {}
        self.pg_backend_config: dict = {}
        self.group_count = 0
        self.tags_to_pg: dict = {}
        self.pg_to_tag: dict = {}
        self.pg_coalesce_state: dict = {}
        self.comms: list = []

    @property
    def pg_config_info(self) -> list:
        return []


class _Store(dist.Store):
    """A _Store is a store whose waits let other ranks run."""

    def __init__(self, simulation: "Simulation") -> None:
        super().__init__()
        self._simulation = simulation

    @property
    def _values(self) -> dict:
        return self._simulation.stored

    def set(self, key, value):
        self._values[key] = value.encode() if isinstance(value, str) else bytes(value)

    def get(self, key):
        self._simulation.wait(lambda: key in self._values, f"the key {key} of a store")
        return self._values[key]

    def add(self, key, amount):
        value = int(self._values.get(key, b"0")) + amount
        self._values[key] = str(value).encode()
        return value

    def compare_set(self, key, expected, desired):
        held = self._values.get(key, b"")
        if isinstance(expected, str):
            expected, desired = expected.encode(), desired.encode()
        if held == expected:
            self._values[key] = held = desired
        return held

    def check(self, keys):
        return all(key in self._values for key in keys)

    def wait(self, keys, timeout=None):
        self._simulation.wait(lambda: self.check(keys), f"the keys {keys} of a store")

    def delete_key(self, key):
        return self._values.pop(key, None) is not None

    def num_keys(self):
        return len(self._values)

    def set_timeout(self, timeout):
        pass


def _handlers() -> dict:
    return DTensor._op_dispatcher._custom_op_handlers


def _exchange(held: dict, wanted: dict) -> None:
    held.clear()
    held.update(wanted)


class _RankState:
    """A _RankState is the state that changes when another rank starts to run."""

    def __init__(self, rank: int, size: int, seed: int, variables: "list[Any]") -> None:
        self.world = _World()
        #: The variables of user code.
        self.variables = variables
        self.environment = {
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": str(size),
            "LOCAL_WORLD_SIZE": str(size),
            "GROUP_RANK": "0",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": "29500",
        }
        generator = torch.Generator()
        generator.manual_seed(seed)
        self.torch_numbers = generator.get_state()
        self.python_numbers = random.Random(seed).getstate()
        self.numpy_numbers = np.random.RandomState(seed).get_state()
        #: The operators that DTensor treats specially; loss_parallel() adds some.
        self.handlers = dict(_handlers())
        #: The function for attention; context_parallel() replaces it.
        self.attention = F.scaled_dot_product_attention
        #: The modules whose calls this rank is in, innermost last.
        self.modules: "list[str]" = []
        self.ran: "list[Ran]" = []
        #: The coarsest dtype of the values that this rank has sent.
        self.sent = torch.float64
        self.groups: "list[SimulatedGroup]" = []
        #: Collectives whose tensors changed between the call and the wait.
        self.changed: "list[Call]" = []


class Simulation:
    """A Simulation runs one function on all ranks of a mesh.

        simulation = Simulation(4, seed=0)
        results = simulation.run(lambda rank: dist.get_rank())    # [0, 1, 2, 3]

    Inside, `torch.distributed` is initialized and all its groups are simulated.
    """

    def __init__(
        self, size: int, seed: int = 0, own: "Optional[OwnState]" = None
    ) -> None:
        """`own` has the variables that each rank copies for itself."""
        self.size, self._own = size, own or OwnState([])
        self.stored: "dict[str, bytes]" = {}
        self._meetings: "dict[Any, Meeting]" = {}
        self._mail: "dict[Any, Mail]" = {}
        self._states = [
            _RankState(rank, size, seed, self._own.fresh()) for rank in range(size)
        ]
        self._turns = Turns(size, self._enter, self._leave)
        self._local = threading.local()

    # Called by the groups and by the recorder.

    @property
    def rank(self) -> int:
        """The rank whose thread runs."""
        return self._local.rank

    @property
    def state(self) -> _RankState:
        return self._states[self.rank]

    def here(self) -> "tuple[str, str]":
        """Returns the source line and the module of the running rank."""
        modules = self.state.modules
        return user_place(), modules[-1] if modules else ""

    def record(self, ran: Ran, tensors: "list[torch.Tensor]") -> None:
        """Records a collective that sends these tensors."""
        state = self.state
        state.ran.append(ran)
        for tensor in tensors:
            if tensor.is_floating_point():
                state.sent = coarser(state.sent, tensor.dtype)

    def collectives(self, rank: int) -> "list[Ran]":
        return self._states[rank].ran

    def not_waited(self, rank: int) -> "list[Call]":
        """Returns the collectives and receives whose wait a rank has left out."""
        return [
            call
            for group in self._states[rank].groups
            for call in group.pending + group.received
        ]

    def changed(self, rank: int) -> "list[Call]":
        """Returns the collectives whose tensors a rank has changed before the wait."""
        return self._states[rank].changed

    def wait(self, ready: Callable[[], bool], what: str) -> None:
        self._turns.wait(self.rank, ready, what)

    def meeting(self, key: Any, size: int) -> Meeting:
        if key not in self._meetings:
            self._meetings[key] = Meeting(size)
        meeting = self._meetings[key]
        if sum(call is not None for call in meeting.calls) == size - 1:
            # The call that comes now is the last one.
            del self._meetings[key]
        return meeting

    def mail(self, key: Any) -> Mail:
        return self._mail.setdefault(key, Mail())

    # The exchange of the ranks' state.

    def _enter(self, rank: int) -> None:
        state = self._states[rank]
        self._local.rank = rank
        distributed_c10d._world = state.world
        os.environ.update(state.environment)
        torch.set_rng_state(state.torch_numbers)
        random.setstate(state.python_numbers)
        np.random.set_state(state.numpy_numbers)
        _exchange(_handlers(), state.handlers)
        F.scaled_dot_product_attention = state.attention
        self._own.give(state.variables)

    def _leave(self, rank: int) -> None:
        state = self._states[rank]
        state.torch_numbers = torch.get_rng_state()
        state.python_numbers = random.getstate()
        state.numpy_numbers = np.random.get_state()
        state.variables = self._own.take()
        state.handlers = dict(_handlers())
        state.attention = F.scaled_dot_product_attention

    def run(self, function: Callable[[int], Any]) -> "list[Any]":
        """Returns the results of `function(rank)` on all ranks."""

        def body(rank: int) -> Any:
            torch.autograd.set_multithreading_enabled(False)
            try:
                _start(
                    _BACKEND, rank=rank, world_size=self.size, store=_Store(self)
                )
                return function(rank)
            finally:
                torch._C._distributed_c10d._unregister_all_process_groups()

        # Compiled code runs as eager code, whose modules are seen.
        with _installed(self), torch.compiler.set_stance("force_eager"):
            try:
                return self._turns.run(body)
            finally:
                self._own.restore()


_running: Optional[Simulation] = None
_start = dist.init_process_group


def _create(options: Any, backend_options: Any) -> SimulatedGroup:
    assert _running is not None
    ranks = tuple(options.global_ranks_in_group) or tuple(range(options.group_size))
    return SimulatedGroup(_running, options.group_id, ranks, options.group_rank)


def _start_if_needed(*args: Any, **kwargs: Any) -> None:
    """Replaces init_process_group() in user code: the ranks are initialized already."""


@contextlib.contextmanager
def _installed(simulation: Simulation) -> "Iterator[None]":
    """Replaces the state of PyTorch and of this process, and restores it."""
    global _running
    if _running is not None:
        raise Error(
            "SP0903",
            "a simulation of ranks already runs in this process",
            "verify",
            [],
            "call verify() after the other call has returned, and not from user code",
        )
    if _BACKEND.upper() not in dist.Backend._plugins:
        dist.Backend.register_backend(
            _BACKEND, _create, extended_api=True, devices=["cpu"]
        )
    world, hook = distributed_c10d._world, sys.excepthook
    environment = dict(os.environ)
    numbers, python_numbers = torch.get_rng_state(), random.getstate()
    numpy_numbers = np.random.get_state()
    handlers, attention = dict(_handlers()), F.scaled_dot_product_attention
    # DeviceMesh tells the meshes of two threads apart only for this name.
    name_of = device_mesh.get_backend
    replaced = (dist, distributed_c10d)
    ends = dist.destroy_process_group
    _running = simulation
    dropout, F.dropout = F.dropout, dropout_within_functions
    torch._C._distributed_c10d._set_thread_isolation_mode(True)
    device_mesh.get_backend = lambda group=None: (
        "threaded" if name_of(group) == _BACKEND else name_of(group)
    )
    for module in replaced:
        module.init_process_group = _start_if_needed
        module.destroy_process_group = _start_if_needed
    try:
        yield
    finally:
        _running = None
        F.dropout = dropout
        for module in replaced:
            module.init_process_group = _start
            module.destroy_process_group = ends
        device_mesh.get_backend = name_of
        torch._C._distributed_c10d._set_thread_isolation_mode(False)
        distributed_c10d._world, sys.excepthook = world, hook
        for key in set(os.environ) - set(environment):
            del os.environ[key]
        os.environ.update(environment)
        torch.set_rng_state(numbers)
        random.setstate(python_numbers)
        np.random.set_state(numpy_numbers)
        _exchange(_handlers(), handlers)
        F.scaled_dot_product_attention = attention
