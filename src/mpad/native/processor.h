/* Compiled once for each kind of processor. */
#include "gemm.h"
#include "layers.h"
#include "inference.h"
#include "batch_norm.h"
#include "embedding.h"
