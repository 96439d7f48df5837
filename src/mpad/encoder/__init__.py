"""The pretrained encoder: an MPAD network that imitates sentence transformers, to start training from."""
