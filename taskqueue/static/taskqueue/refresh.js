// Keeps parts of a page up to date, without loading it anew.
//
// What a page does for it, and nothing more:
//
// 1. {% include "admin/taskqueue/includes/refresh.html" %} stands where the control shall be, and
//    this file is loaded (in the Media of the ModelAdmin).
// 2. One element has data-refresh-root. In it, what may change stands in elements that have
//    data-refresh="a name", unique on the page. They do not stand within each other, and hold no
//    CSRF token: forms stand outside, buttons within name them (form="…" formaction="…").
// 3. The address of the page answers. It is asked with `X-Requested-With: taskqueue-refresh` and,
//    where there was one before, `If-None-Match`. It may answer with the whole page, or with the
//    regions alone and an ETag, or with 304: taskqueue/admin/reports.py does that. The root's
//    data-refresh-etag, where it is given, is the ETag of what the page shows at first.
// 4. The root's data-refresh-stream, where it is given, is the address of server-sent events:
//    "ready" once it is open, and "changed" when the page has changed (taskqueue/admin/signals.py).
//    They bring no content. A change is asked for at once, at most once a second; the page is asked
//    as often as without a stream, or every data-refresh-calm seconds where that is more. Where the
//    stream ends or is refused it is opened again after 5 seconds, then after up to 5 minutes.
//
// Regions whose HTML differs are replaced; those that are missing in the answer stay. The focus
// stays on what has the same id, or else the same address, name and value. Nothing is asked while
// the page is hidden, or in use: a field has the focus (but not the control's own), a <details> or
// <dialog> is open, a box is ticked or text is marked within a region. After each replacement the
// root is sent the event "taskqueue:refreshed".
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const root = document.querySelector("[data-refresh-root]");
  const controls = document.querySelector("[data-refresh-controls]");
  if (!root || !controls) {
    return;
  }
  const KEY = "taskqueue-refresh-seconds";
  const PATIENCE = 20000;
  const CONTROLS = "input, select, textarea, [contenteditable]";
  const choice = controls.querySelector("[data-refresh-seconds]");
  const status = controls.querySelector("[data-refresh-status]");
  const trouble = controls.querySelector("[data-refresh-trouble]");
  const texts = controls.dataset;
  const regions = (parent) => parent.querySelectorAll("[data-refresh]");
  const shown = new Map();
  let etag = root.dataset.refreshEtag || "";
  let timer = 0;
  let isAsking = false;
  let updated = "";
  let isOut = false;
  let isPaused = false;
  // Of the stream: whether it is open, whether it has told of a change that was not asked for yet,
  // the earliest time for that, and how long to wait before it is opened again.
  const stream = root.dataset.refreshStream;
  const calm = Number(root.dataset.refreshCalm || 0);
  const FIRST_PAUSE = 5000;
  const LONGEST_PAUSE = 300000;
  const GAP = 1000;
  let source = null;
  let isLive = false;
  let isDue = false;
  let dueAt = 0;
  let pause = FIRST_PAUSE;
  let again = 0;

  for (const region of regions(root)) {
    shown.set(region.dataset.refresh, region.innerHTML);
  }

  const remembered = () => {
    try {
      return localStorage.getItem(KEY);
    } catch {
      return null;
    }
  };

  const remember = (seconds) => {
    try {
      localStorage.setItem(KEY, seconds);
    } catch {
      // Where nothing may be kept, the choice holds for this page.
    }
  };

  const clock = () => {
    const now = new Date();
    return [now.getHours(), now.getMinutes(), now.getSeconds()]
      .map((part) => String(part).padStart(2, "0"))
      .join(":");
  };

  const isInUse = () => {
    const focused = document.activeElement;
    if (focused && focused.matches(CONTROLS) && !controls.contains(focused)) {
      return true;
    }
    if (document.querySelector("dialog[open]")) {
      return true;
    }
    if (root.querySelector("details[open], [data-refresh] input[type=checkbox]:checked")) {
      return true;
    }
    const marked = document.getSelection();
    return Boolean(marked && !marked.isCollapsed && root.contains(marked.anchorNode));
  };

  const say = (text) => {
    if (status.textContent !== text) {
      status.textContent = text;
    }
  };

  const complain = (text) => {
    if (trouble.textContent !== text) {
      trouble.textContent = text;
    }
    trouble.hidden = text === "";
  };

  const sameAs = (element) => {
    if (element.id) {
      return `#${CSS.escape(element.id)}`;
    }
    const parts = ["href", "formaction", "name", "value", "aria-label", "aria-labelledby"]
      .filter((name) => element.hasAttribute(name))
      .map((name) => `[${name}="${CSS.escape(element.getAttribute(name))}"]`);
    return parts.length ? element.localName + parts.join("") : "";
  };

  const replace = (region, fresh) => {
    const focused = region.contains(document.activeElement) ? document.activeElement : null;
    const selector = focused ? sameAs(focused) : "";
    const wide = [...region.querySelectorAll(".taskqueue-wide")].map((each) => [
      each.scrollLeft,
      each.scrollTop,
    ]);
    region.replaceChildren(...fresh.childNodes);
    region.querySelectorAll(".taskqueue-wide").forEach((each, place) => {
      [each.scrollLeft, each.scrollTop] = wide[place] || [0, 0];
    });
    if (selector) {
      const again = region.querySelector(selector);
      if (again) {
        again.focus({ preventScroll: true });
      }
    }
  };

  const show = (text) => {
    const answer = new DOMParser().parseFromString(text, "text/html");
    const fresh = new Map([...regions(answer)].map((each) => [each.dataset.refresh, each]));
    if (fresh.size === 0) {
      return false;
    }
    for (const region of regions(root)) {
      const name = region.dataset.refresh;
      const newer = fresh.get(name);
      if (newer && newer.innerHTML !== shown.get(name)) {
        shown.set(name, newer.innerHTML);
        replace(region, newer);
      }
    }
    root.dispatchEvent(new CustomEvent("taskqueue:refreshed", { bubbles: true }));
    return true;
  };

  const ask = async () => {
    const headers = { "X-Requested-With": "taskqueue-refresh" };
    if (etag) {
      headers["If-None-Match"] = etag;
    }
    const answer = await fetch(location.href, {
      headers,
      cache: "no-store",
      credentials: "same-origin",
      redirect: "manual",
      signal: AbortSignal.timeout(PATIENCE),
    });
    if (answer.type === "opaqueredirect" || answer.status === 401 || answer.status === 403) {
      isOut = true;
      return;
    }
    if (answer.status === 304) {
      return;
    }
    if (!answer.ok) {
      throw new Error(`HTTP ${answer.status}`);
    }
    const text = await answer.text();
    // Somebody may have begun to use the page meanwhile: then it is asked again afterwards.
    if (isInUse()) {
      return;
    }
    if (!show(text)) {
      isOut = true;
      return;
    }
    etag = answer.headers.get("ETag") || "";
  };

  const refresh = async () => {
    const began = performance.now();
    isAsking = true;
    isDue = false;
    try {
      await ask();
      if (isOut) {
        complain(texts.textOut);
        say("");
        return;
      }
      updated = clock();
      complain("");
      say(texts.textUpdated.replace("{time}", updated));
    } catch {
      complain(texts.textSilent.replace("{time}", updated || clock()));
    } finally {
      isAsking = false;
      // A page that takes long is asked for less often.
      const now = performance.now();
      dueAt = now + Math.max(GAP, 2 * (now - began));
    }
  };

  const wait = () => {
    clearTimeout(timer);
    const seconds = Number(choice.value);
    if (isOut) {
      close();
      return;
    }
    if (!seconds) {
      say(texts.textOff);
      return;
    }
    let milliseconds = 1000 * (isLive && !isPaused ? Math.max(seconds, calm) : seconds);
    if (isDue && !isPaused) {
      milliseconds = Math.max(0, dueAt - performance.now());
    }
    timer = setTimeout(turn, milliseconds);
  };

  const turn = async () => {
    if (isAsking) {
      return;
    }
    isPaused = !document.hidden && isInUse();
    if (isPaused) {
      say(texts.textPaused);
    } else if (!document.hidden) {
      await refresh();
    }
    wait();
  };

  const hear = () => {
    isDue = true;
    if (!isAsking && !isPaused) {
      wait();
    }
  };

  const close = () => {
    clearTimeout(again);
    if (source) {
      source.close();
    }
    source = null;
    isLive = false;
    root.removeAttribute("data-refresh-live");
  };

  const open = () => {
    if (!stream || source || isOut || document.hidden || !Number(choice.value)) {
      return;
    }
    clearTimeout(again);
    source = new EventSource(stream);
    source.addEventListener("ready", () => {
      if (!isLive) {
        isLive = true;
        pause = FIRST_PAUSE;
        root.setAttribute("data-refresh-live", "");
        hear(); // Something may have changed before it was open.
      }
    });
    source.addEventListener("changed", hear);
    source.addEventListener("error", () => {
      close();
      again = setTimeout(open, pause * (0.5 + Math.random()));
      pause = Math.min(LONGEST_PAUSE, pause * 2);
      if (!isAsking) {
        wait();
      }
    });
  };

  const known = remembered();
  if (known !== null && [...choice.options].some((option) => option.value === known)) {
    choice.value = known;
  }
  choice.addEventListener("change", () => {
    remember(choice.value);
    wait();
    if (Number(choice.value)) {
      open();
    } else {
      close();
    }
  });
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      close();
    } else if (Number(choice.value) && !isOut) {
      clearTimeout(timer);
      turn();
      open();
    }
  });
  updated = clock();
  controls.hidden = false;
  say(texts.textUpdated.replace("{time}", updated));
  wait();
  open();
});
