"""Models: what people write, what is stored, what agents read. No I/O, no clocks."""
