"""Turns a new agent into a folder with the files of design section 6, and an example into a copy of one's own."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path
from string import Template

from gateway.model import AgentName
from gateway.workspace.files import Workspace, new_workspace

TEMPLATES = ("AGENTS.md", "SOUL.md", "IDENTITY.md", "USER.md")


def scaffold(root: Path, folder: str, agent: AgentName, title: str) -> bool:
    """Makes the agent's folder with its template files and `memory/`; whether it was made.

    A folder that is there is taken exactly as it is, also an empty one: nothing in it is touched.

    Raises:
        FileProblem: it can't be made, or something that is not a folder has its name.

    """
    if Workspace(root, folder).exists():
        return False
    words = {"agent": str(agent), "title": " ".join(title.split())}
    with new_workspace(root, folder) as workspace:
        for name in TEMPLATES:
            workspace.replace(name, Template(_template(name)).substitute(words))
        workspace.make_folder("memory")
    return True


def copy_example(source: Path, target: Path) -> bool:
    """Copies a folder of text files, such as the example workspaces, to `target` unless that is there; whether it did.

    Links in the source are left out. The source is part of the installation, where an installer may have made hard
    links, so it is not held to the rules of a workspace.

    Raises:
        FileProblem: the target can't be made.

    """
    if Workspace(target.parent, target.name).exists():
        return False
    with new_workspace(target.parent, target.name) as workspace:
        for folder, _, names in os.walk(source, followlinks=False):
            for name in sorted(names):
                original = Path(folder, name)
                if not original.is_symlink():
                    workspace.replace(original.relative_to(source).as_posix(), original.read_text(encoding="utf-8"))
    return True


def _template(name: str) -> str:
    return files("gateway.workspace").joinpath("templates", name).read_text(encoding="utf-8")
