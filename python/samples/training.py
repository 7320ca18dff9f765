"""Training and exporting small torch models, the same way for each sample."""

import io
import warnings

import torch


def seed(value=0):
    torch.manual_seed(value)
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(2)


def fit(model, inputs, targets, epochs, batch, rate):
    """Adam with a cosine schedule on cross-entropy of the model's logits."""
    optimiser = torch.optim.Adam(model.parameters(), lr=rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, epochs)
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for rows in torch.randperm(len(inputs)).split(batch):
            loss = torch.nn.functional.cross_entropy(model.logits(inputs[rows]), targets[rows])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            total += loss.item() * len(rows)
        schedule.step()
        if epoch % 5 == 4 or epoch == epochs - 1:
            print(f"  epoch {epoch + 1}: loss {total / len(inputs):.4f}", flush=True)
    model.eval()


def accuracy(model, inputs, targets):
    with torch.no_grad():
        return (model.logits(inputs).argmax(-1) == targets).float().mean().item()


def to_onnx(model, example, input_name, output_name, dynamic):
    """ONNX bytes of opset 17; `dynamic` names the dimensions that vary, per tensor."""
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model, (example,), buffer, input_names=[input_name], output_names=[output_name],
                          opset_version=17, dynamo=False, dynamic_axes=dynamic)
    return buffer.getvalue()
