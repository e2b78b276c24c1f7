// Hides the fields that the chosen kind of rule does not use. The form works without it.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const kind = document.getElementById("id_kind");
  if (!kind) {
    return;
  }
  const showUsed = () => {
    for (const field of document.querySelectorAll("[data-kinds]")) {
      const row = field.closest(".form-row");
      if (row) {
        row.hidden = !field.dataset.kinds.split(" ").includes(kind.value);
      }
    }
  };
  kind.addEventListener("change", showUsed);
  showUsed();
});
