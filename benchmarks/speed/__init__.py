"""Speed and memory of preparing, training, answering and serving."""
