from datetime import timedelta
from pathlib import Path
import pytest
from django.utils import timezone
from taskqueue.models import Operation, Task
from tests.browser.chromium import expect
from tests.worker.test_operations import fail

pytestmark = pytest.mark.django_db(transaction=True)
OUT = Path("/tmp/ops_shots")


def test_flow(admin_page, live_server, start_worker):
    page = admin_page
    fail(3000)
    page.goto("/admin/taskqueue/task/?q=status:failed")
    page.check("#action-toggle")
    page.screenshot(path=OUT / "flow-list.png")
    page.click(".actions .question a")
    page.select_option("select[name=action]", "retry_many")
    page.click(".actions button")
    expect(page.locator(".taskqueue-start-query")).to_have_text("status:failed")
    page.fill("#id_reason", "mended <b>")
    page.screenshot(path=OUT / "flow-ask.png", full_page=True)
    page.click("text=Retry: 3,000 tasks")
    expect(page.locator(".taskqueue-operation-state")).to_contain_text("waiting")
    page.select_option("[data-refresh-seconds]", "2")
    page.screenshot(path=OUT / "flow-page0.png", full_page=True)
    start_worker("--queues", "other")
    seen = []
    for _ in range(100):
        text = page.inner_text(".taskqueue-operation-state")
        if text not in seen:
            seen.append(text)
            page.screenshot(path=OUT / f"flow-page{len(seen)}.png", full_page=True)
        if "finished" in text:
            break
        page.wait_for_timeout(200)
    print(seen)
    print(page.inner_text("[data-refresh-root]"))
    assert Task.objects.filter(status="ready").count() == 3000
