// Keeps the bars of {% task_progress %} up to date, without loading the page anew.
//
// Each element with data-taskqueue-progress is asked for its JSON with the ETag of the last answer:
// a second after a change, up to ten seconds after the last one; not while the page is hidden, and
// no more once it has finished. Texts are set as text, never as HTML. Each change is told to the
// page by the event "taskqueue:progress", whose detail is the JSON. Where that names an address to
// go to, the page goes there, unless the event was cancelled.
const FIRST = 1000;
const LONGEST = 10000;
const PATIENCE = 20000;

const follow = (element) => {
  const part = (name) => element.querySelector(`[data-progress=${name}]`);
  let etag = "";
  let pause = FIRST;
  let timer = 0;
  let isAsking = false;
  let isOver = false;

  const say = (name, text) => {
    const place = part(name);
    if (place && place.textContent !== text) {
      place.textContent = text;
    }
    if (place && name !== "text") {
      place.hidden = text === "";
    }
  };

  const show = (seen) => {
    element.dataset.state = seen.state;
    const bar = part("bar");
    if (bar) {
      if (seen.percent === undefined) {
        bar.removeAttribute("value");
      } else {
        bar.value = seen.percent;
      }
      bar.hidden = seen.is_finished && seen.state !== "succeeded";
    }
    say("text", seen.text);
    say("message", seen.message || "");
    say("result", seen.result_text || "");
    const goesOn = element.dispatchEvent(
      new CustomEvent("taskqueue:progress", { bubbles: true, cancelable: true, detail: seen }),
    );
    if (seen.redirect && goesOn) {
      const address = new URL(seen.redirect, location.href);
      if (address.origin === location.origin) {
        location.assign(address);
      }
    }
  };

  const ask = async () => {
    const headers = { Accept: "application/json" };
    if (etag) {
      headers["If-None-Match"] = etag;
    }
    const answer = await fetch(element.dataset.taskqueueProgress, {
      headers,
      cache: "no-store",
      credentials: "same-origin",
      signal: AbortSignal.timeout(PATIENCE),
    });
    if (answer.status === 304) {
      pause = Math.min(LONGEST, pause * 1.2);
      return;
    }
    if (answer.status === 429 || answer.status >= 500) {
      pause = LONGEST;
      return;
    }
    const seen = await answer.json();
    etag = answer.headers.get("ETag") || "";
    pause = FIRST;
    isOver = seen.is_finished;
    show(seen);
  };

  const turn = async () => {
    if (isAsking || isOver || document.hidden) {
      return;
    }
    isAsking = true;
    try {
      await ask();
    } catch {
      pause = LONGEST;
    } finally {
      isAsking = false;
    }
    clearTimeout(timer);
    if (!isOver && element.isConnected) {
      timer = setTimeout(turn, pause);
    }
  };

  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) {
      clearTimeout(timer);
      turn();
    }
  });
  timer = setTimeout(turn, FIRST);
};

document.querySelectorAll("[data-taskqueue-progress]").forEach(follow);
