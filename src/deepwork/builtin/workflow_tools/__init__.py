"""The feature `workflow_tools`: the four tools, and a prompt for each workflow."""
