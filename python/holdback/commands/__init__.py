"""One module per subcommand of the `holdback` command line.

Each has `add_parser(subparsers)`, which declares its arguments and calls
`set_defaults(run=run)`, and `run(args) -> int`, which returns the exit code. A module is
imported only when its command is asked for.
"""
