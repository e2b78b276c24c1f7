// Suggests qualifiers and their values while a search is typed. What may be suggested is asked for
// once, when the box has the focus. The box works without it.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const MOST = 8;
  const box = document.querySelector("input[data-suggest]");
  const list = document.getElementById("taskqueue-suggestions");
  if (!box || !list) {
    return;
  }
  let known = {};
  let loading = null;
  let chosen = -1;

  const ask = async () => {
    try {
      const answer = await fetch(box.dataset.suggest, { credentials: "same-origin" });
      if (answer.ok && !answer.redirected) {
        known = await answer.json();
      }
    } catch {
      // Nothing is suggested.
    }
  };
  const load = () => (loading ??= ask());

  // The word that the caret stands in, and where it begins.
  const word = () => {
    const before = box.value.slice(0, box.selectionStart);
    const text = before.slice(before.search(/\S*$/));
    return { text, from: before.length - text.length, to: box.selectionStart };
  };

  const quoted = (value) => (/[\s,"]/.test(value) ? `"${value.replace(/["\\]/g, "\\$&")}"` : value);

  const suggestions = (text) => {
    const colon = text.indexOf(":");
    if (colon < 0) {
      const begun = text.toLowerCase();
      return Object.keys(known)
        .filter((key) => begun && key.startsWith(begun))
        .map((key) => `${key}:`);
    }
    const key = text.slice(0, colon);
    const parts = text.slice(colon + 1).split(",");
    const begun = parts.pop().toLowerCase();
    const before = [key, [...parts, ""].join(",")].join(":");
    return (Object.hasOwn(known, key) ? known[key] : [])
      .filter((value) => value.toLowerCase().includes(begun) && !parts.includes(value))
      .map((value) => before + quoted(value))
      .filter((each) => each !== text);
  };

  const hide = () => {
    list.hidden = true;
    chosen = -1;
    box.setAttribute("aria-expanded", "false");
    box.removeAttribute("aria-activedescendant");
  };

  const mark = (place) => {
    const options = [...list.children];
    chosen = (place + options.length) % options.length;
    options.forEach((option, number) => option.setAttribute("aria-selected", number === chosen));
    box.setAttribute("aria-activedescendant", options[chosen].id);
  };

  const take = (text) => {
    const { from, to } = word();
    const end = text.endsWith(":") ? "" : " ";
    box.setRangeText(text + end, from, to, "end");
    box.focus();
    show();
  };

  const show = () => {
    const found = suggestions(word().text).slice(0, MOST);
    chosen = -1;
    list.replaceChildren(
      ...found.map((text, number) => {
        const option = document.createElement("li");
        option.id = `taskqueue-suggestion-${number}`;
        option.setAttribute("role", "option");
        option.setAttribute("aria-selected", "false");
        option.textContent = text;
        option.addEventListener("mousedown", (event) => {
          event.preventDefault();
          take(text);
        });
        return option;
      }),
    );
    list.hidden = found.length === 0;
    box.setAttribute("aria-expanded", String(!list.hidden));
    box.removeAttribute("aria-activedescendant");
  };

  box.setAttribute("role", "combobox");
  box.setAttribute("aria-autocomplete", "list");
  box.setAttribute("aria-expanded", "false");
  box.setAttribute("aria-controls", list.id);
  box.addEventListener("focus", load);
  box.addEventListener("input", async () => {
    await load();
    show();
  });
  box.addEventListener("blur", hide);
  box.addEventListener("keydown", (event) => {
    if (list.hidden || event.isComposing) {
      return;
    }
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      mark(event.key === "ArrowDown" ? chosen + 1 : chosen < 0 ? -1 : chosen - 1);
    } else if ((event.key === "Enter" || event.key === "Tab") && chosen >= 0) {
      event.preventDefault();
      take(list.children[chosen].textContent);
    } else if (event.key === "Escape") {
      event.preventDefault();
      hide();
    }
  });
});
