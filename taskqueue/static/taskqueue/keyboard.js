// Keys: "/" goes to the search box, "?" opens the help, "g" and a letter go to a page.
// Pages are the links that have data-taskqueue-key (see admin/taskqueue/includes/nav.html), so
// that only those that one may view are gone to. Nothing happens while somebody types.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const WAIT = 1500;
  let wentAt = 0;

  const isTyping = (element) =>
    element instanceof HTMLElement &&
    (element.isContentEditable || element.matches("input, select, textarea"));

  const goTo = (key) => {
    const link = document.querySelector(`a[data-taskqueue-key="${CSS.escape(key)}"]`);
    if (link) {
      link.click();
    }
    return link !== null;
  };

  const toggleHelp = () => {
    const help = document.getElementById("taskqueue-keyboard");
    if (!help || typeof help.showModal !== "function") {
      return false;
    }
    if (help.open) {
      help.close();
    } else {
      help.showModal();
    }
    return true;
  };

  const search = () => {
    const box = document.getElementById("searchbar");
    if (box) {
      box.focus();
      box.select();
    }
    return box !== null;
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) {
      return;
    }
    if (isTyping(event.target)) {
      return;
    }
    const isSecond = performance.now() - wentAt < WAIT && wentAt > 0;
    wentAt = 0;
    let isDone = false;
    if (event.key === "?") {
      isDone = toggleHelp();
    } else if (document.querySelector("dialog[open]")) {
      return;
    } else if (isSecond) {
      isDone = goTo(event.key);
    } else if (event.key === "g") {
      wentAt = performance.now();
    } else if (event.key === "/") {
      isDone = search();
    }
    if (isDone) {
      event.preventDefault();
    }
  });
});

// What makes a task is pressed once: its form has a field named "once", by which the server tells
// a second time from another one. The button is given back where the page stays, or is come back to.
document.addEventListener("DOMContentLoaded", () => {
  const PATIENCE = 5000;
  const pressed = new Set();
  const release = () => {
    for (const button of pressed) {
      button.disabled = false;
    }
    pressed.clear();
  };

  document.addEventListener("submit", (event) => {
    const button = event.submitter;
    if (!button || !event.target.querySelector("input[name=once]")) {
      return;
    }
    // Later: what is disabled before it is sent is not sent along.
    setTimeout(() => {
      if (!event.defaultPrevented) {
        button.disabled = true;
        pressed.add(button);
        setTimeout(release, PATIENCE);
      }
    });
  });
  window.addEventListener("pageshow", release);
});
