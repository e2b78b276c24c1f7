// The rows of the list are replaced whenever they are refreshed: Django's script for ticked rows is
// told of the new ones.
"use strict";
document.addEventListener("taskqueue:refreshed", () => {
  const boxes = document.querySelectorAll("#result_list input.action-select");
  for (const counter of document.querySelectorAll("span.action-counter")) {
    counter.dataset.actionsIcnt = boxes.length;
  }
  if (boxes.length && typeof window.Actions === "function") {
    window.Actions(boxes);
  }
});
