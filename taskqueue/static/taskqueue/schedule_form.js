// Hides the fields that the chosen kind of rule does not use, shows the next times of the rule while
// it is typed, and asks for the fields of a task as soon as it is chosen. The form works without it.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const PAUSE = 300;
  const kind = document.getElementById("id_kind");
  if (!kind) {
    return;
  }
  const showUsed = () => {
    for (const field of document.querySelectorAll("[data-kinds]")) {
      const row = field.closest(".taskqueue-field");
      if (row) {
        row.hidden = !field.dataset.kinds.split(" ").includes(kind.value);
      }
    }
  };
  kind.addEventListener("change", showUsed);
  showUsed();

  const task = document.getElementById("id_task");
  const choose = document.querySelector("[data-choose]");
  if (task && choose) {
    choose.hidden = true;
    task.addEventListener("change", () => choose.click());
  }

  const preview = document.querySelector("[data-preview]");
  const rule = kind.closest("fieldset");
  if (!preview || !rule) {
    return;
  }
  rule.append(preview);
  preview.hidden = false;
  const times = preview.querySelector("[data-preview-times]");
  // They move the starts of runs too, and stand elsewhere in the form.
  const others = [...document.querySelectorAll(
    "[name=name], [name=jitter_0], [name=jitter_1], [name=max_runs]",
  )];
  let timer = 0;
  let asked = 0;
  const show = async () => {
    const values = [...rule.querySelectorAll("input, select"), ...others]
      .filter((field) => field.name && (field.type !== "checkbox" || field.checked))
      .map((field) => [field.name, field.value]);
    values.push(["schedule", preview.dataset.schedule]);
    const mine = ++asked;
    try {
      const answer = await fetch(`${preview.dataset.preview}?${new URLSearchParams(values)}`);
      const html = await answer.text();
      if (mine === asked && answer.ok && !answer.redirected) {
        times.innerHTML = html;
      }
    } catch {
      // The next change asks again.
    }
  };
  const later = () => {
    clearTimeout(timer);
    timer = setTimeout(show, PAUSE);
  };
  for (const field of others) {
    field.addEventListener("input", later);
    field.addEventListener("change", later);
  }
  rule.addEventListener("input", later);
  rule.addEventListener("change", later);
  show();
});
