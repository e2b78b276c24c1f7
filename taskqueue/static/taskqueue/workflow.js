// Shows the part of a graph where something failed, runs or waits, if it is larger than its frame.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const frame = document.querySelector(".taskqueue-graph");
  const selectors = [".tq-failed", ".tq-running", ".tq-waiting"];
  const nodes = selectors.map((each) => frame && frame.querySelector(`.tq-node${each}`));
  const node = nodes.find(Boolean);
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
