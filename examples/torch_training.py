"""Train a network for its top 3 labels: replace CrossEntropyLoss and watch every k at once.

python examples/torch_training.py
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from shortlist.datasets import load_letter
from shortlist.torch import TopKAccuracy, TopKHingeLoss


def main():
    torch.manual_seed(0)
    letter = load_letter(dtype="float32")
    train = TensorDataset(torch.from_numpy(letter.X_train), torch.from_numpy(letter.y_train))
    X_test, y_test = torch.from_numpy(letter.X_test), torch.from_numpy(letter.y_test)

    net = nn.Sequential(nn.Linear(16, 128), nn.ReLU(), nn.Linear(128, 26))
    loss = TopKHingeLoss(k=3)  # in place of nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
    metric = TopKAccuracy(max_k=5)

    for epoch in range(5):
        for scores, labels in DataLoader(train, batch_size=128, shuffle=True):
            optimizer.zero_grad()
            loss(net(scores), labels).backward()
            optimizer.step()
        metric.reset()
        with torch.inference_mode():
            metric.update(net(X_test), y_test)
        shown = "  ".join(f"top-{k} {a:.1%}" for k, a in enumerate(metric.compute(), start=1))
        print(f"epoch {epoch + 1}: {shown}")


if __name__ == "__main__":
    main()
