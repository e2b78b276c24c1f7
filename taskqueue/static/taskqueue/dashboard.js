// Asks before a button's verb is posted, and for a reason. The dialog is that of
// admin/taskqueue/includes/act.html; without it, or without scripts, buttons post at once.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const dialog = document.getElementById("taskqueue-ask");
  if (!dialog || typeof dialog.showModal !== "function") {
    return;
  }
  const part = (name) => dialog.querySelector(`[data-ask-${name}]`);
  const yes = part("yes");

  const ask = (button) => {
    const { ask: question, askNote: note } = button.dataset;
    part("title").textContent = question;
    part("said").textContent = note || "";
    part("said").hidden = !note;
    part("time").hidden = !("askMinutes" in button.dataset);
    for (const input of dialog.querySelectorAll("input:not([type=hidden])")) {
      input.value = "";
    }
    part("confirmed").disabled = false;
    yes.textContent = button.textContent;
    yes.value = button.value;
    yes.formAction = button.formAction;
    yes.classList.toggle("taskqueue-grave", button.classList.contains("taskqueue-grave"));
    dialog.showModal();
    dialog.querySelector("input:not([type=hidden])").focus();
  };

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-ask]");
    if (button) {
      event.preventDefault();
      ask(button);
    }
  });
  // Enter would press the first button of the form, which is one of the page.
  dialog.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.target.matches("input")) {
      event.preventDefault();
      yes.click();
    }
  });
  part("no").addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => {
    part("confirmed").disabled = true;
  });
});
