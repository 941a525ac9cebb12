"""The JSON Schemas of platform file and environment file, for editors.

They are published in docs/schemas; a test compares the published files with these.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from windlass.settings.environment_files import EnvironmentFile
from windlass.settings.platform_files import PlatformFile

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windlass.settings.file_fields import FileModel

SCHEMAS: Mapping[str, type[FileModel]] = {"environment.json": EnvironmentFile, "platform.json": PlatformFile}


def schema_text(model: type[FileModel]) -> str:
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **model.model_json_schema()}
    return json.dumps(schema, indent=2) + "\n"
