"""Write cases of classic Core ML neural networks, computed by NumPy and PyTorch from what the schema says.

usage: neural_network_cases.py DIR

Writes DIR/FAMILY.zip with a folder for each case: model.mlmodel, inputs/NAME.npy, outputs/NAME.npy and
case.json. The networks are made by the NeuralNetworkBuilder of coremltools 9.0; there is nothing on Linux that
runs them, so the expected values are written here a second time, by hand. Inputs are random with fixed seeds.
"""

import pathlib
import sys

from neural_network_archive import write
from neural_network_images import images
from neural_network_layers import elementwise, matrices, positions, reductions, shapes
from neural_network_models import control, models, recurrent
from neural_network_pipelines import pipelines

# The order decides which random numbers a case gets.
FAMILIES = [elementwise, images, matrices, reductions, shapes, positions, recurrent, control, models, pipelines]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for family in FAMILIES:
        family()
    write(pathlib.Path(sys.argv[1]))


if __name__ == "__main__":
    main()
