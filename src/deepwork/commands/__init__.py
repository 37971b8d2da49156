"""What the commands of the kernel, of features and of plugins share."""
