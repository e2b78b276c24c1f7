// Puts a button before each text that is shown as it is, which copies it. The button is that of
// the template with the id "taskqueue-copy"; without scripts, or without a clipboard, there is none.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const template = document.getElementById("taskqueue-copy");
  if (!template || !navigator.clipboard) {
    return;
  }
  const add = () => {
    for (const text of document.querySelectorAll(".taskqueue-card pre.taskqueue-text")) {
      if (!text.previousElementSibling?.matches(".taskqueue-copy")) {
        text.before(template.content.cloneNode(true));
      }
    }
  };
  document.addEventListener("click", async (event) => {
    const button = event.target.closest(".taskqueue-copy");
    if (button) {
      await navigator.clipboard.writeText(button.nextElementSibling.textContent);
      button.classList.add("taskqueue-copied");
      setTimeout(() => button.classList.remove("taskqueue-copied"), 1500);
    }
  });
  document.addEventListener("taskqueue:refreshed", add);
  add();
});
