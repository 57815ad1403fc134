"""`eliza bundle`: makes, checks and fetches bundles."""

from __future__ import annotations

import typer

from elizainference.cli._bundle_convert import convert
from elizainference.cli._bundle_create import create
from elizainference.cli._bundle_fetch import fetch
from elizainference.cli._bundle_inspect import inspect
from elizainference.cli._bundle_verify import verify

bundle = typer.Typer(name="bundle", no_args_is_help=True, help="Make, check, look into, fetch and convert bundles.")
bundle.command()(create)
bundle.command()(verify)
bundle.command()(inspect)
bundle.command()(fetch)
bundle.command()(convert)
