"""Benchmarks: named workloads, rivals behind one adapter, the floor. docs/performance.md says how to run and read them."""
