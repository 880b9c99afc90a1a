"""``leadtime schema``: what a policy may say, for editors, for kubeconform and for people."""

import argparse
import sys
from typing import Any, Final

_EPILOG: Final = """\
examples:
  leadtime schema > scalingpolicy_leadtime_v1alpha1.json
      then, as the first line of a policy file, for completion and checks while typing:
      # yaml-language-server: $schema=scalingpolicy_leadtime_v1alpha1.json
  kubeconform -schema-location scalingpolicy_leadtime_v1alpha1.json chat.yaml
  leadtime schema -o markdown      every key with its default, to read

exit codes:
  0 fine   2 usage
"""


def add_parser(verbs: "argparse._SubParsersAction[Any]") -> None:
    """Add the verb to the command line."""
    parser = verbs.add_parser(
        "schema",
        help="print the JSON Schema of a policy",
        description="Print the JSON Schema (draft 2020-12) of a ScalingPolicy, or its reference.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("document", nargs="?", choices=("policy",), default="policy")
    parser.add_argument("-o", "--output", choices=("json", "markdown"), default="json")


def run(arguments: argparse.Namespace) -> int:
    """Print the schema."""
    # pydantic takes longer to load than `leadtime schema --help` may.
    from adapter.policy.reference import policy_page
    from adapter.policy.schema import schema_text

    sys.stdout.write(policy_page() if arguments.output == "markdown" else schema_text())
    return 0
