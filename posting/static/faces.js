// The faces of members: their avatars, or circles with their initials.

import { root } from "./page.js";

const HUES = 12; // as in `elements.py`

/**
 * Return the face of a user.
 * @param {{id: string, username: string, display_name: string | null, avatar_url: string | null}}
 *   user
 */
export function faceOf({ id, username, display_name, avatar_url }) {
  if (avatar_url) {
    const image = document.createElement("img");
    Object.assign(image, { className: "face", alt: "", width: 64, height: 64 });
    image.src = `${root}/avatars/${avatar_url.split("/").pop()}/64`;
    return image;
  }
  const circle = document.createElement("span");
  const name = display_name || username;
  circle.dataset.initial = (/[\p{L}\p{N}]/u.exec(name)?.[0] ?? name[0]).toUpperCase()[0];
  circle.dataset.hue = String(
    [...id].reduce((sum, letter) => sum + letter.charCodeAt(0), 0) % HUES,
  );
  return circle;
}
