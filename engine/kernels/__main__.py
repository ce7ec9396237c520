"""`python -m engine.kernels` compiles all loops, so that later processes find them in the cache."""

from engine.kernels.loading import load

if __name__ == "__main__":
    load()
