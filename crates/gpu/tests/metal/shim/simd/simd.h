// Metal's texts include this header for vectors that hosts share. Kernels use none of its names.
#pragma once
