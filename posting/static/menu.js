// The menus of actions, which close when the reader goes elsewhere, and the face of the reader on
// their own menu.

import { me } from "./account.js";
import { all, first, onEvent } from "./dom.js";
import { faceOf } from "./faces.js";

function showFace() {
  for (const place of all(document, "[data-my-face]"))
    place.replaceChildren(...(me ? [faceOf(me)] : []));
}

const openMenus = () => all(document, ":is(.menu, .rare)[open]");

/** Close a menu. The focus stays at its button. */
function close(menu) {
  if (menu.contains(document.activeElement)) first(menu, "summary").focus();
  menu.open = false;
}

onEvent("focusin", (target) => {
  for (const menu of openMenus()) if (!menu.contains(target)) close(menu);
});
onEvent("click", (target) => {
  const opener = target.closest("summary");
  for (const menu of openMenus()) if (!menu.contains(opener)) close(menu);
});
onEvent("keydown", (_target, { key }) => {
  if (key === "Escape") openMenus().forEach(close);
});

document.addEventListener("account", showFace);
showFace();
