// Keys, themes and live updates. Without this script, every page works by its links and forms.
(() => {
  "use strict";

  const POLL_MS = 10000;
  const THEMES = ["", "light", "dark"];
  const NAMES = { "": "as the system", light: "light", dark: "dark" };
  const root = document.documentElement;
  const byId = (id) => document.getElementById(id);

  function announce(text) {
    byId("status").textContent = text;
  }

  // Themes

  const themeButton = byId("theme");

  function showTheme() {
    const name = NAMES[root.dataset.theme || ""];
    themeButton.setAttribute("aria-label", `Theme: ${name}`);
    themeButton.title = `Theme: ${name} (t)`;
  }

  function nextTheme() {
    const next = THEMES[(THEMES.indexOf(root.dataset.theme || "") + 1) % THEMES.length];
    if (next) root.dataset.theme = next;
    else delete root.dataset.theme;
    try {
      if (next) localStorage.setItem("theme", next);
      else localStorage.removeItem("theme");
    } catch {
      // Storage may be blocked: then the theme is that of this page only.
    }
    showTheme();
    announce(`Theme: ${NAMES[next]}`);
    document.dispatchEvent(new Event("themechange"));
  }

  themeButton.hidden = false;
  themeButton.addEventListener("click", nextTheme);
  showTheme();

  // Keys

  const dialog = byId("keys");
  const keysButton = byId("keys-button");
  keysButton.hidden = false;
  keysButton.addEventListener("click", () => dialog.showModal());

  function move(step) {
    const items = [...document.querySelectorAll("[data-item]")].filter((each) => each.checkVisibility());
    if (!items.length) return;
    const at = items.indexOf(document.activeElement);
    const next = at < 0 ? (step > 0 ? 0 : items.length - 1) : Math.min(Math.max(at + step, 0), items.length - 1);
    items[next].focus();
    items[next].scrollIntoView({ block: "nearest" });
  }

  function back() {
    if (history.length > 1) history.back();
    else document.querySelector("[data-back]")?.click();
  }

  const actions = {
    j: () => move(1),
    k: () => move(-1),
    "/": () => byId("pod-search")?.focus(),
    "?": () => dialog.showModal(),
    t: nextTheme,
    Escape: back,
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || dialog.open) return;
    const target = event.target;
    if (target.matches("input, select, textarea")) {
      if (event.key === "Escape") target.blur();
      return;
    }
    let action = actions[event.key];
    // Arrows scroll the page, until a list has the focus.
    if (target.matches("[data-item]")) {
      if (event.key === "ArrowDown") action = actions.j;
      if (event.key === "ArrowUp") action = actions.k;
    }
    if (!action) return;
    event.preventDefault();
    action();
  });

  // The link to JSON keeps the query of the page.

  const json = byId("json");
  if (json) {
    const url = new URL(location.href);
    url.searchParams.set("format", "json");
    url.hash = "";
    json.href = url.pathname + url.search;
  }

  // Live updates: the page is fetched again, and its live part is replaced if it differs.

  const live = byId("live");

  function replaceLive(fresh) {
    const current = byId("live");
    if (fresh.innerHTML === current.innerHTML) return;
    const focused = current.contains(document.activeElement) && document.activeElement.getAttribute("href");
    const open = new Set([...current.querySelectorAll("details[open]")].map((each) => each.id));
    const hasNew = fresh.dataset.newest !== current.dataset.newest;
    current.replaceWith(fresh);
    for (const each of fresh.querySelectorAll("details")) if (open.has(each.id)) each.open = true;
    if (focused) fresh.querySelector(`[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
    if (hasNew) announce("There are new decisions.");
  }

  async function poll() {
    if (document.hidden || live.querySelector("form :focus")) return;
    try {
      const response = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store" });
      if (response.status === 401) location.reload();
      if (!response.ok) return;
      const fresh = new DOMParser().parseFromString(await response.text(), "text/html").getElementById("live");
      if (fresh) replaceLive(fresh);
    } catch {
      // The server is not reachable: the next poll tries again.
    }
  }

  if (live && "live" in live.dataset) {
    let polling = false;
    const pollOnce = async () => {
      if (polling) return;
      polling = true;
      await poll();
      polling = false;
    };
    setInterval(pollOnce, POLL_MS);
    document.addEventListener("visibilitychange", pollOnce);
  }
})();
