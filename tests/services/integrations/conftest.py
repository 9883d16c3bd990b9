"""Programs of MCP servers are started here, from folders of the tests."""

from tests.on_disk import folder_on_disk as folder_on_disk
