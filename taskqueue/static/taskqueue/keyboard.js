// Keys: "/" goes to the search box, "?" opens the help, "g" and a letter go to a page; "j", "k" and
// "x" go through the rows of a list and tick them.
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

  // Rows of a list: "j" and "k" move between them, "x" ticks one; Enter follows its link.
  const toRow = (by) => {
    const links = [...document.querySelectorAll("#result_list tbody th a")];
    const at = links.findIndex((link) => link.closest("tr").contains(document.activeElement));
    const link = links[at < 0 ? (by > 0 ? 0 : links.length - 1) : at + by];
    if (link) {
      link.focus();
      link.scrollIntoView({ block: "nearest" });
    }
    return link !== undefined;
  };

  const tick = () => {
    const row = document.activeElement.closest("#result_list tbody tr");
    const box = row && row.querySelector("input.action-select");
    if (box) {
      box.click();
    }
    return Boolean(box);
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) {
      return;
    }
    if (isTyping(event.target) && event.target.type !== "checkbox") {
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
    } else if (event.key === "j" || event.key === "k") {
      isDone = toRow(event.key === "j" ? 1 : -1);
    } else if (event.key === "x") {
      isDone = tick();
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

// Where the navigation scrolls, the page that one is on is in sight.
document.addEventListener("DOMContentLoaded", () => {
  for (const here of document.querySelectorAll(".taskqueue-tabs [aria-current]")) {
    const nav = here.closest(".taskqueue-tabs");
    if (nav.scrollWidth > nav.clientWidth) {
      nav.scrollLeft = here.offsetLeft - (nav.clientWidth - here.offsetWidth) / 2;
    }
  }
});
