"""What each key of job.yml and config.yml means, for editors that show it: a sentence a key."""

from __future__ import annotations

from collections.abc import Mapping

# By the name of the model and of its field.
Descriptions = Mapping[str, Mapping[str, str]]

_WITHOUT_EFFECT = "Accepted for older files; without effect."

JOB: Descriptions = {
    "StepOutput": {
        "type": "file: one path; files: any number of paths.",
        "description": "What is expected; the agent reads it with the step.",
        "required": "Whether the step can be finished without it.",
    },
    "UserInput": {
        "name": "A parameter that the agent asks its user for.",
        "description": "What the parameter means.",
    },
    "FileInput": {
        "file": "An output of that step; the agent is given its path.",
        "from_step": "The step that makes the file; it has to be among the dependencies.",
    },
    "Review": {
        "run_each": "step: all outputs are judged together. The name of an output: "
        "only that one, and of type files each file by itself.",
        "quality_criteria": "Questions that have to be answered with yes, by the name of the criterion.",
        "additional_review_guidance": "What the reviewer should know besides.",
    },
    "HookAction": {
        "prompt": _WITHOUT_EFFECT,
        "prompt_file": _WITHOUT_EFFECT,
        "script": _WITHOUT_EFFECT,
    },
    "Hooks": {
        "after_agent": _WITHOUT_EFFECT,
        "before_tool": _WITHOUT_EFFECT,
        "before_prompt": _WITHOUT_EFFECT,
    },
    "Step": {
        "id": "The name of the step in workflows, inputs and dependencies.",
        "name": "A name for people.",
        "description": "What the step is for, in a sentence.",
        "instructions_file": "A Markdown file with the agent's instructions, relative to the job's folder.",
        "outputs": "What the step has to deliver, by name; {} if nothing.",
        "reviews": "What is judged before the step is complete; [] if nothing is.",
        "inputs": "What the step is given: parameters from the user, and files of earlier steps.",
        "dependencies": "The steps whose files it uses.",
        "hooks": _WITHOUT_EFFECT,
        "stop_hooks": _WITHOUT_EFFECT,
        "exposed": _WITHOUT_EFFECT,
        "hidden": _WITHOUT_EFFECT,
        "agent": _WITHOUT_EFFECT,
    },
    "Workflow": {
        "name": "The name by which start_workflow names it.",
        "summary": "What the workflow does, for the agent that chooses one.",
        "steps": "Step ids in their order; a list of ids is a group of steps that are done at the same time.",
        "agent": _WITHOUT_EFFECT,
    },
    "JobFile": {
        "name": "The name by which start_workflow names the job; usually that of its folder.",
        "version": "The version of the job, as 1.0.0.",
        "summary": "What the job is for, for the agent that chooses one.",
        "common_job_info_provided_to_all_steps_at_runtime": "What the agent reads with every step of the job.",
        "steps": "The steps, from which workflows are put together.",
        "workflows": "The orders in which steps are done; a job without any cannot be started.",
    },
}

CONFIG: Descriptions = {
    "StateSection": {
        "store": "json, memory, or a store of a plugin, such as sql.",
    },
    "CommandSection": {
        "run": "The program and its arguments; no shell is involved.",
        "pass_env": "Variables that it sees besides the usual ones; * at the end stands for any rest.",
        "verdict": "json: it prints a verdict. exit_code: 0 passes, any other code fails.",
        "folder": "Where it runs. copy: a folder with copies of what is judged. project: the project itself.",
    },
    "RouteSection": {
        "job": "Only reviews of this job.",
        "step": "Only reviews of this step.",
        "review": "Only reviews with this run_each.",
        "runner": "Who judges these reviews: self, one of commands, or a runner of a plugin.",
    },
    "GateSection": {
        "enabled": "Whether outputs are reviewed.",
        "strict": "Only a person can skip a review, and only reviewers that give verdicts may judge.",
        "runner": "Who judges: self (a sub-agent of the agent), one of commands, or a runner of a plugin.",
        "timeout": "Seconds for one external review, plus 30 for each file above five.",
        "max_attempts": "Failed external reviews after which a step is stuck and the user is asked.",
        "concurrency": "How many reviews run at once.",
        "runners": "Sends single reviews to other runners; the first that fits decides.",
        "commands": "Programs that can be selected as runners, by name.",
    },
    "ToolsSection": {
        "sets": "The tool sets that are served; without it all that are installed.",
        "prefix": "What is put before the names of a set's tools, by set.",
        "budget": "The tokens of the tool list above which `deepwork doctor` warns.",
    },
    "NotificationsSection": {
        "webhook": "The address that is told of what waits for a person. Only in your own file.",
        "secret_file": "The file with the key that signs what is sent to the webhook.",
        "command": "The program that is told of what waits for a person. Only in your own file.",
        "pass_env": "Variables that this program sees besides the usual ones.",
    },
    "PluginsSection": {
        "block": "Plugins or distributions that are not loaded.",
        "require": "Plugins without which the server does not start.",
        "settings": "Settings of plugins, by the plugin's name.",
    },
    "Config": {
        "version": _WITHOUT_EFFECT,
        "platforms": _WITHOUT_EFFECT,
        "state": "Where sessions are kept.",
        "quality_gate": "How the outputs of steps are reviewed.",
        "tools": "Which tools are served, and under which names.",
        "plugins": "Which plugins are loaded, and their settings.",
        "notifications": "Who is told of what waits for a person. Only in your own file.",
        "allowed_output_roots": "Folders outside of the project in which outputs may lie.",
    },
}
