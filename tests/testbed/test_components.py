"""The pins say what the descriptions say, and nothing about where modules come from."""

from __future__ import annotations

import re

import pytest

from tests.testbed import gobuild, places
from tests.testbed.components import COMPONENTS, Component


@pytest.mark.parametrize("component", COMPONENTS, ids=lambda c: c.name)
def test_pins_fit_the_description(component: Component) -> None:
    pins = places.SOURCE / "go" / component.name
    module = (pins / "go.mod").read_text()
    assert f"{component.module} {component.version}" in module
    for program in component.programs:
        assert f'import _ "{program.package}"' in (pins / "tools.go").read_text()
    assert not re.search(r"https?://", module + (pins / "go.sum").read_text())


@pytest.mark.parametrize("component", COMPONENTS, ids=lambda c: c.name)
def test_an_image_only_takes_what_is_kept(component: Component) -> None:
    built = {
        (c.name, path)
        for c in COMPONENTS
        for path in (*(f"bin/{p.binary}" for p in c.programs), *(f"files/{f}" for f in c.files))
    }
    for image in component.images:
        assert set(image.copies.values()) <= built
    assert set(component.manifests) <= set(component.files)


def test_the_cache_is_keyed_by_pins_and_flags() -> None:
    names = {gobuild.built(component).name for component in COMPONENTS}
    assert len(names) == len(COMPONENTS)
    assert all(gobuild.built(component).parent == places.cache() for component in COMPONENTS)
