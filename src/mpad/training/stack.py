"""Several models of one architecture ↔ one stacked model, its weights with a leading axis."""

from collections.abc import Sequence
from copy import deepcopy

import torch
from torch import Tensor, nn

from mpad.dropout import Dropout
from mpad.errors import InputError
from mpad.network import Network


def stack_models(models: Sequence[Network]) -> Network:
    """Return one model that computes several, each on its own rows; weights get a leading axis.

    Models may differ in their weights and their dropout rates, not in their shape. Fixed word vectors that are the
    same in all of them are kept once.
    """
    shapes = {_shape(model) for model in models}
    if len(shapes) != 1:
        raise InputError(f"only models of one architecture train together; found {len(shapes)} different ones")
    stacked = deepcopy(models[0])
    stacked.vectors = _stacked_vectors(models)
    with torch.no_grad():
        for name, module in stacked.named_modules():
            own = [model.get_submodule(name) for model in models]
            for key in module._parameters:
                if key != "vectors" and module._parameters[key] is not None:
                    value = torch.stack([other._parameters[key].detach() for other in own])  # type: ignore[union-attr]
                    trained = module._parameters[key].requires_grad
                    module._parameters[key] = nn.Parameter(value, requires_grad=trained)
            for key in module._buffers:
                if key != "vectors" and module._buffers[key] is not None:
                    module._buffers[key] = torch.stack([other._buffers[key] for other in own])  # type: ignore[misc]
    for name, module in stacked.named_modules():
        if isinstance(module, Dropout):  # one that drops nothing may stand beside others that do
            module.p = max(model.get_submodule(name).p for model in models)  # type: ignore[type-var, assignment]
    return stacked


def _shape(model: Network) -> tuple[object, ...]:
    config = model.config
    return tuple(value for name, value in vars(config).items() if name != "dropout")


def _stacked_vectors(models: Sequence[Network]) -> Tensor:
    tables = [model.vectors.detach() for model in models]
    if models[0].config.learn_vectors:
        return nn.Parameter(torch.stack(tables))
    if all(table.data_ptr() == tables[0].data_ptr() or torch.equal(table, tables[0]) for table in tables[1:]):
        return tables[0]
    return torch.stack(tables)


def unstack_models(stacked: Network, models: Sequence[Network]) -> None:
    """Copy each model's weights back into it."""
    with torch.no_grad():
        states = stacked.state_dict()
        for number, model in enumerate(models):
            model.load_state_dict({name: value[number] for name, value in states.items()})
