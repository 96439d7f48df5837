/* All that is compiled once for each kind of processor. */
#include "gemm.h"
#include "inference.h"
#include "fused_inference.h"
#include "layers.h"
#include "batch_norm.h"
#include "embedding.h"
