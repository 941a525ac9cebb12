"""The published schemas are those of the models, and accept what the models accept."""

from __future__ import annotations

import re
from pathlib import Path

import jsonschema
import pytest
import yaml

from tests.settings.setting_files import ENVIRONMENT
from windlass.settings.environment_files import EnvironmentFile
from windlass.settings.file_fields import FileModel, schema_text
from windlass.settings.platform_files import PlatformFile

ROOT = Path(__file__).parents[2]
SCHEMAS: dict[str, type[FileModel]] = {"environment.json": EnvironmentFile, "platform.json": PlatformFile}
EXAMPLES = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/platform-file.md").read_text(), re.DOTALL)


def schema(name: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(yaml.safe_load((ROOT / "docs/schemas" / name).read_text()))


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_the_published_schema_is_the_one_of_the_model(name: str) -> None:
    """After a change: python -m tests.settings.test_schemas writes them anew."""
    assert (ROOT / "docs/schemas" / name).read_text() == schema_text(SCHEMAS[name])
    jsonschema.Draft202012Validator.check_schema(schema(name).schema)


def test_the_reference_platform_fits_its_schema() -> None:
    text = (ROOT / "src/windlass/settings/reference.yaml").read_text()
    schema("platform.json").validate(yaml.safe_load(text))


@pytest.mark.parametrize("text", EXAMPLES)
def test_the_examples_of_the_page_fit_their_schema_and_are_read(text: str, tmp_path: Path) -> None:
    from windlass.settings.source import SettingsSource

    is_platform = "kind: Platform" in text
    schema("platform.json" if is_platform else "environment.json").validate(yaml.safe_load(text))
    path = tmp_path / "file.yaml"
    path.write_text(text)
    SettingsSource({}).settings({"dag" if is_platform else "environment-file": str(path)})


@pytest.mark.parametrize("change", ["timeouts: {sync: 5}", "surprise: 1", "retries: {maxAttempts: 0}", "name: A B"])
def test_the_schema_refuses_what_we_refuse(change: str) -> None:
    document = {**yaml.safe_load(ENVIRONMENT), **yaml.safe_load(change)}
    assert not schema("environment.json").is_valid(document)
    assert schema("environment.json").is_valid(yaml.safe_load(ENVIRONMENT))


if __name__ == "__main__":
    for file, model in SCHEMAS.items():
        (ROOT / "docs/schemas" / file).write_text(schema_text(model))
