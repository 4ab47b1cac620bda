// Runs before the page is painted, so that it does not appear in the other theme first.
(() => {
  "use strict";
  let theme = "";
  try {
    theme = localStorage.getItem("theme") || "";
  } catch {
    // Storage may be blocked: then the theme is the system's.
  }
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
})();
