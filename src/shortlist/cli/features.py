"""``shortlist features``: what a frozen network makes of images, for a linear probe."""

import sys
from dataclasses import asdict

from shortlist.cli.options import OUTPUT, OutputOptions
from shortlist.cli.output import check_output, report
from shortlist.cli.unfold import argument, headed, option


@headed("Network")
def features(
    *,
    network: str = argument(
        "NETWORK",
        "timm:NAME or torchvision:NAME (pretrained, without the classifier), a TorchScript file "
        "(.pt), or MODULE:FUNCTION of yours that returns a torch module.",
        ...,
    ),
    source: str = argument(
        "INPUTS",
        "A folder of images, with a subfolder for each class; an .npy file of inputs; or "
        "MODULE:FUNCTION of yours that returns a data set.",
        ...,
    ),
    batch_size: int = option("--batch-size N", "Inputs at a time.", 64),
    workers: int = option("--workers N", "Processes that load the inputs.", 0),
    image_size: int = option(
        "--image-size PIXELS",
        "Side of the square that images are cut to, unless the network has its own.",
        224,
    ),
    device: str | None = option(
        "--device DEVICE", "Where the network runs, such as cuda. Without it: the CPU."
    ),
    pool: str = option(
        "--pool mean|flatten",
        "What becomes of feature maps: the mean over positions, or all entries.",
        "mean",
    ),
    file: str = option("-o --output FILE.npy", "Where to write the features.", ..., panel=OUTPUT),
    labels: str | None = option(
        "--labels FILE.npy",
        "Where to write the labels, if there are any. Without it: beside the features, as "
        "FILE.labels.npy.",
        panel=OUTPUT,
    ),
    dtype: str = option(
        "--dtype TYPE", "float16, float32 or float64, in the file.", "float32", panel=OUTPUT
    ),
    output: OutputOptions,
) -> None:
    """Run a frozen network over images and write its features, to train a classifier on.

    Examples:
      shortlist features torchvision:resnet50 photos/train -o train.npy
      shortlist train train.npy --labels train.labels.npy -o model -k 5
    """
    check_output(file, inputs=(network, source))
    if labels is not None:
        check_output(labels, "--labels", inputs=(network, source))
    if not file.endswith(".npy"):
        raise ValueError(f"-o {file}: the name must end in .npy")
    sys.path.insert(0, "")  # MODULE:FUNCTION may lie in the working directory
    from shortlist.torch import features_command

    try:
        written = features_command(
            network,
            source,
            file,
            labels=labels,
            batch_size=batch_size,
            num_workers=workers,
            image_size=image_size,
            device=device,
            dtype=dtype,  # type: ignore[arg-type]
            pool=pool,  # type: ignore[arg-type]
            progress=False if output.quiet else None,
        )
    except TypeError as error:
        # The user's function has returned something else than a network or a data set.
        raise ValueError(str(error)) from error
    lines = [
        f"{written.features}: {written.n_samples} examples, {written.n_features} features "
        f"({written.seconds:.1f} s)",
        f"labels: {written.labels or 'none'}",
    ]
    report(output, "features", asdict(written), lines)
