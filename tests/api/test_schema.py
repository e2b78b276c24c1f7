"""The OpenAPI document: without warnings, valid, of this API alone, wherever it is mounted."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from django.test import override_settings
from django.urls import set_script_prefix

from taskqueue.api import documents
from taskqueue.api.urls import ADDRESSES
from tests.api.conftest import ApiClient

pytestmark = pytest.mark.django_db
METHODS = ("get", "post", "patch", "put", "delete")


@pytest.fixture(scope="module")
def document() -> Any:
    """As the tests' settings have it."""
    return documents.generated(are_warnings_told=True)


@pytest.fixture
def operations(document: Any) -> list[tuple[str, str, Any]]:
    """Each method of each path."""
    return [
        (path, method, each)
        for path, methods in document["paths"].items()
        for method, each in methods.items()
    ]


@pytest.mark.slow
def test_it_is_made_without_warnings_and_valid() -> None:
    from drf_spectacular.drainage import GENERATOR_STATS
    from drf_spectacular.validation import validate_schema

    GENERATOR_STATS.reset()
    document = documents.generated(are_warnings_told=True)
    told = [str(each) for each in (*GENERATOR_STATS._warn_cache, *GENERATOR_STATS._error_cache)]
    assert told == []
    validate_schema(document)
    assert document["openapi"].startswith("3.1.")
    assert document["info"]["title"] == "taskqueue"


@pytest.mark.slow
@pytest.mark.parametrize("version", ["3.0.3", "3.1.1"])
def test_a_project_that_documents_all_of_its_addresses_is_not_warned_either(version: str) -> None:
    from drf_spectacular.drainage import GENERATOR_STATS
    from drf_spectacular.generators import SchemaGenerator
    from drf_spectacular.settings import patched_settings
    from drf_spectacular.validation import validate_schema

    GENERATOR_STATS.reset()
    with patched_settings({"OAS_VERSION": version}):
        document: Any = SchemaGenerator().get_schema(public=True)
        validate_schema(document)
    told = [str(each) for each in (*GENERATOR_STATS._warn_cache, *GENERATOR_STATS._error_cache)]
    assert told == []
    assert "/api/v1/queues/" in document["paths"]
    operations = [each for methods in document["paths"].values() for each in methods.values()]
    ways = {name for each in operations for way in each["security"] for name in way}
    assert ways == set(document["components"]["securitySchemes"])


def test_every_address_stands_in_it_but_those_of_the_documents(document: Any) -> None:
    found = {
        str(each.pattern).replace("<path:", "{").replace("<str:", "{").replace(">", "}")
        for each in ADDRESSES
        if each.callback.cls.schema is not None
    }
    assert {path.lstrip("/") for path in document["paths"]} == found
    left_out = [str(each.pattern) for each in ADDRESSES if each.callback.cls.schema is None]
    assert sorted(left_out) == ["docs/", "schema/"]


def test_a_database_that_is_busy_is_told_of_wherever_one_is_asked(operations: Any) -> None:
    without = {path for path, _, each in operations if "503" not in each["responses"]}
    assert without == {"/healthz/live"}
    for path, _, each in operations:
        assert ("requestBody" in each) == ("411" in each["responses"]), path
        if path != "/healthz/live" and path != "/healthz/ready":
            assert "Retry-After" in each["responses"]["503"]["headers"]


def test_every_operation_has_an_id_of_its_own_and_a_heading_that_is_explained(
    operations: Any, document: Any
) -> None:
    ids = [each["operationId"] for _, _, each in operations]
    assert len(ids) == len(set(ids))
    tags = {each["name"] for each in document["tags"]}
    assert {tag for _, _, each in operations for tag in each["tags"]} == tags
    assert all(each["summary"] and each["description"] for _, _, each in operations)


def test_schemas_of_request_bodies_allow_no_additional_properties(
    operations: Any, document: Any
) -> None:
    for path, method, each in operations:
        for media_type, body in each.get("requestBody", {}).get("content", {}).items():
            assert media_type == "application/json"
            name = body["schema"]["$ref"].rpartition("/")[2]
            schema = document["components"]["schemas"][name]
            assert schema["additionalProperties"] is False, (path, method)


def test_headers_are_told_of(document: Any) -> None:
    edit = document["paths"]["/schedules/{name}/"]["patch"]
    assert {"If-Match", "Idempotency-Key"} <= {each["name"] for each in edit["parameters"]}
    assert {"409", "412", "404", "422"} <= set(edit["responses"])
    assert "ETag" in edit["responses"]["200"]["headers"]
    assert "Retry-After" in edit["responses"]["429"]["headers"]
    look = document["paths"]["/schedules/{name}/"]["get"]
    assert {"ETag"} <= set(look["responses"]["304"]["headers"])
    create = document["paths"]["/schedules/"]["post"]
    assert "Location" in create["responses"]["201"]["headers"]
    assert "Location" in document["paths"]["/operations/"]["post"]["responses"]["202"]["headers"]


def test_who_may_ask_is_told_of(document: Any) -> None:
    schemes = document["components"]["securitySchemes"]
    assert set(schemes) == {"basicAuth", "cookieAuth", "metricsToken"}
    assert {"metricsToken": []} in document["paths"]["/metrics"]["get"]["security"]
    assert document["paths"]["/healthz/live"]["get"]["security"] == [{}]
    assert {"basicAuth": []} in document["paths"]["/queues/"]["get"]["security"]


@override_settings(
    TASKQUEUE={"API_AUTHENTICATION": ["rest_framework.authentication.BasicAuthentication"]}
)
def test_it_follows_the_setting_of_the_authentication(root: ApiClient) -> None:
    schemes = documents.document("")["components"]["securitySchemes"]
    assert set(schemes) == {"basicAuth", "metricsToken"}


def test_it_says_where_the_api_is_also_behind_a_script_name(root: ApiClient) -> None:
    assert root.look("schema/").json()["servers"] == [{"url": "/api/v1"}]
    set_script_prefix("/shop/")  # As the handlers of real servers do.
    try:
        assert root.look("schema/").json()["servers"] == [{"url": "/shop/api/v1"}]
    finally:
        set_script_prefix("/")


def test_it_comes_as_yaml_too_and_is_sent_once(root: ApiClient) -> None:
    answer = root.look("schema/")
    assert root.look("schema/", if_none_match=answer["ETag"]).status_code == 304
    text = root.look("schema/?format=yaml")
    assert text["Content-Type"] == "application/yaml"
    assert text.content.decode().startswith("openapi: 3.1.")
    assert root.look("schema/?format=xml").status_code == 400


@override_settings(
    SPECTACULAR_SETTINGS={"OAS_VERSION": "3.0.3", "TITLE": "the shop", "SCHEMA_PATH_PREFIX": "/x"}
)
def test_the_settings_of_the_project_change_nothing(document: Any) -> None:
    assert documents.generated(are_warnings_told=True) == document


def test_threads_that_ask_first_at_once_get_the_same(document: Any) -> None:
    documents._made.cache_clear()
    found: list[str] = []
    threads = [
        threading.Thread(target=lambda: found.append(json.dumps(documents.document(""))))
        for _ in range(4)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(found) == 4
    assert set(found) == {json.dumps(document)}


def test_without_its_package_the_extra_is_named(
    root: ApiClient, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.INSTALLED_APPS = [each for each in settings.INSTALLED_APPS if "sidecar" not in each]
    answer = root.look("docs/")
    assert (answer.status_code, answer.json()["code"]) == (501, "docs_not_installed")
    assert "django-taskqueue[api]" in answer.json()["detail"]
    monkeypatch.setattr(documents, "HAS_SCHEMA", False)
    answer = root.look("schema/")
    assert (answer.status_code, answer.json()["code"]) == (501, "schema_not_installed")
    assert "django-taskqueue[api]" in answer.json()["detail"]


def test_the_page_holds_nothing_inline(root: ApiClient) -> None:
    answer = root.look("docs/")
    page = answer.content.decode()
    assert answer["Content-Type"].startswith("text/html")
    assert "<style" not in page
    assert " style=" not in page
    assert " onload=" not in page
    assert page.count("<script") == page.count("<script src=") == 2
    assert 'data-schema="/api/v1/schema/"' in page


def test_no_marks_of_its_maker_are_left_in_it(document: Any) -> None:
    assert "x-spec" not in json.dumps(document)
