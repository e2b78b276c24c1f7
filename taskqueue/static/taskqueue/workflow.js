// Shows the part of a graph where something failed or runs, if the graph is larger than its frame.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const frame = document.querySelector(".taskqueue-graph");
  const node = frame && (frame.querySelector(".tq-failed") || frame.querySelector(".tq-running"));
  if (!node) {
    return;
  }
  const outer = frame.getBoundingClientRect();
  const inner = node.getBoundingClientRect();
  if (inner.right > outer.right) {
    frame.scrollLeft += inner.left - outer.left - (outer.width - inner.width) / 2;
  }
  if (inner.bottom > outer.bottom) {
    frame.scrollTop += inner.top - outer.top - (outer.height - inner.height) / 2;
  }
});
