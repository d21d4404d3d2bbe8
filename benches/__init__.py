"""Benchmarks: named workloads, peers behind one adapter, the floor. docs/performance.md says how to
run and read them.
"""
