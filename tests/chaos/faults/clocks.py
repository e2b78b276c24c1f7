"""Faults of clocks."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator

from taskqueue.models import Task
from tests.chaos.faults.base import POSTGRESQL, TAKEN_OVER, Fault

SHIFT = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
static long shift(void) { char *by = getenv("CHAOS_CLOCK"); return by ? atol(by) : 0; }
int clock_gettime(clockid_t id, struct timespec *t) {
    int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
    int code = real(id, t);
    if (code == 0 && id == CLOCK_REALTIME) t->tv_sec += shift();
    return code;
}
int gettimeofday(struct timeval *t, void *zone) {
    int (*real)(struct timeval *, void *) = dlsym(RTLD_NEXT, "gettimeofday");
    int code = real(t, zone);
    if (code == 0) t->tv_sec += shift();
    return code;
}
time_t time(time_t *t) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (t) *t = now.tv_sec;
    return now.tv_sec;
}
"""


class ClockWrong(Fault):
    """Two workers whose clocks are wrong by an hour, one ahead and one behind; one is killed."""

    name = "clock_wrong"
    expectation = "no difference"
    databases = POSTGRESQL  # SQLite has no clock but that of who asks.
    takeover_limit = TAKEN_OVER

    @classmethod
    def obstacle(cls) -> str:
        return "" if shutil.which("cc") else "there is no C compiler to build another clock with"

    def prepare(self) -> None:
        stage = self.stage
        source, library = stage.folder / "clock.c", stage.folder / "clock.so"
        source.write_text(SHIFT)
        subprocess.run(
            ["cc", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True
        )
        for seconds in (3600, -3600):
            env = {"LD_PRELOAD": str(library), "CHAOS_CLOCK": str(seconds)}
            stage.start_worker("process", 2, env=env, wait_ready=False)
        stage.start_worker("thread", 2)
        for worker in stage.workers:
            worker.wait_until_ready(60)

    def strike(self) -> None:
        stage = self.stage
        stage.await_load(0.3)
        stage.pause(0, 1)
        began = stage.now()
        worker = stage.workers[self.chance.randrange(2)]
        stage.await_lease(worker)
        worker.leave_no_proof()  # Its leases run out, by the database's clock.
        stage.hit(worker, worker.kill)
        stage.note(self.name, began, worker)
        stage.await_load(1)

    def look(self) -> Iterator[str]:
        now = self.stage.now()
        for task in Task.objects.filter(finished_at__isnull=False).iterator():
            if not abs(task.finished_at.timestamp() - now) < 600:
                yield f"{task.id} ended at {task.finished_at}, by some worker's clock"
                return
