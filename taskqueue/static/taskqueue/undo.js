// Counts down the seconds in which a bulk act can be undone, and hides the bar when they have
// passed. Without scripts the bar stays, and the answer to its button tells what has become of it.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const starts = new WeakMap();
  const tick = () => {
    for (const bar of document.querySelectorAll("[data-undo-seconds]")) {
      if (!starts.has(bar)) {
        starts.set(bar, Date.now() + Number(bar.dataset.undoSeconds) * 1000);
      }
      const left = Math.ceil((starts.get(bar) - Date.now()) / 1000);
      bar.hidden = left <= 0;
      bar.querySelector("[data-undo-left]").textContent = Math.max(0, left);
    }
  };
  tick();
  setInterval(tick, 500);
});
