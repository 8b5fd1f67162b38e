"""What the package's metadata says of the repository: its addresses, and the README with links that hold anywhere."""

import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(!?)\[((?:!\[[^\]]*\]\([^)]*\)|[^\[\]])*)\]\(([^)\s]+)\)")
"""A link or a picture in Markdown: its exclamation mark, text and target. A picture may be the text of a link."""


def absolute(text: str, repository: str, tag: str) -> str:
    """`text` in Markdown, whose relative links and pictures lead to the files of the repository at a tag.

    Args:
        text: Markdown. Links between its own headings, which begin with ``#``, stay.
        repository: Address of the repository.
        tag: Name of a tag or a branch.
    """

    def replaced(found: re.Match) -> str:
        mark, words, target = found.groups()
        words = LINK.sub(replaced, words)
        if re.match(r"[a-z]+:|#", target):
            return f"{mark}[{words}]({target})"
        return f"{mark}[{words}]({repository}/{'raw' if mark else 'blob'}/{tag}/{target})"

    return LINK.sub(replaced, text)


class RepositoryMetadata(MetadataHookInterface):
    """Fills the fields ``readme`` and ``urls`` from ``repository``, its one option in pyproject.toml."""

    def update(self, metadata: dict) -> None:
        """Add the fields to `metadata`, which has the version."""
        repository = self.config["repository"].rstrip("/")
        tag = f"v{metadata['version']}"
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": absolute(text, repository, tag)}
        metadata["urls"] = {
            "Repository": repository,
            "Documentation": f"{repository}/blob/{tag}/docs/index.md",
            "Changelog": f"{repository}/blob/{tag}/CHANGELOG.md",
            "Issues": f"{repository}/issues",
        }
