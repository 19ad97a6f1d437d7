// The avatar of a member: a square that they cut out of a picture.

import { me, setMe } from "./account.js";
import { onAction } from "./actions.js";
import { result } from "./api.js";
import { sendRequest } from "./buttons.js";
import { first, onEvent } from "./dom.js";
import { gettext } from "./language.js";
import { root } from "./page.js";
import { say } from "./status.js";

const QUALITY = 0.92;

/** @type {ImageBitmap | null} */
let picture = null;
/** @type {{x: number, y: number} | null} where the pointer drags the picture */
let pointer = null;

const crop = () => first(document, "[data-crop]");
const canvas = () => first(crop(), "canvas");
const slider = (name) => first(crop(), `[name=${name}]`);

/** Draw the square that the sliders say. */
function draw() {
  const side = Math.min(picture.width, picture.height) / Number(slider("zoom").value);
  const left = (picture.width - side) * Number(slider("left").value);
  const top = (picture.height - side) * Number(slider("top").value);
  const { width, height } = canvas();
  const context = canvas().getContext("2d");
  context.fillStyle = "white"; // below a drawing
  context.fillRect(0, 0, width, height);
  context.imageSmoothingQuality = "high";
  context.drawImage(picture, left, top, side, side, 0, 0, width, height);
}

/** @param {File | undefined} file */
async function choose(file) {
  const error = first(document, "#avatar-error");
  error.textContent = "";
  if (!file) return;
  try {
    picture = await createImageBitmap(file);
  } catch {
    const { name } = file;
    error.textContent = gettext("%(name)s is not an image that your browser can read.", { name });
    return;
  }
  crop().hidden = false;
  for (const [name, value] of Object.entries({ zoom: 1, left: 0.5, top: 0.5 }))
    slider(name).value = value;
  draw();
  slider("zoom").focus();
}

onEvent("change", (target) => {
  if (target.id !== "avatar") return;
  choose(target.files[0]);
  target.value = "";
});
onEvent("input", (target) => target.closest("[data-crop]") && draw());

/** Move a slider by a part of the picture. */
function move(name, pixels, length) {
  const side = Math.min(picture.width, picture.height) / Number(slider("zoom").value);
  if (length <= side) return;
  const shown = canvas().getBoundingClientRect().width;
  slider(name).value = Number(slider(name).value) - (pixels * side) / shown / (length - side);
}

onEvent("pointerdown", (target, { clientX, clientY, pointerId }) => {
  if (!target.matches?.("[data-crop] canvas")) return;
  target.setPointerCapture(pointerId);
  pointer = { x: clientX, y: clientY };
});
onEvent("pointermove", (_target, { clientX, clientY }) => {
  if (pointer === null) return;
  move("left", clientX - pointer.x, picture.width);
  move("top", clientY - pointer.y, picture.height);
  pointer = { x: clientX, y: clientY };
  draw();
});
for (const type of ["pointerup", "pointercancel"])
  onEvent(type, () => {
    pointer = null;
  });

onAction("save-avatar", async () => {
  const file = await new Promise((done) => canvas().toBlob(done, "image/webp", QUALITY));
  const body = new FormData();
  body.append("file", file);
  const response = await fetch(`${root}/users/me/avatar`, { method: "PUT", body }).catch(
    () => null,
  );
  const text = (await response?.text()) ?? "";
  const { data } = result(response?.status ?? 0, text, null, "image");
  crop().hidden = true;
  changeAvatar(data);
  say(gettext("Your picture is saved."));
});

onAction("delete-avatar", async (button) => {
  if (!(await sendRequest(button))) return;
  changeAvatar({ avatar_url: null });
  first(document, "#avatar").focus();
  say(gettext("Your picture is deleted."));
});

/** @param {{avatar_url: string | null}} user */
function changeAvatar({ avatar_url }) {
  if (me) setMe({ ...me, avatar_url });
  showAvatar({ avatar_url });
}

/**
 * Show the avatar of the reader, if there is one.
 * @param {{avatar_url: string | null}} user
 */
export function showAvatar({ avatar_url }) {
  const image = document.createElement("img");
  const alt = gettext("Your picture");
  Object.assign(image, { className: "portrait", alt, width: 256, height: 256 });
  if (avatar_url) image.src = `${root}/avatars/${avatar_url.split("/").pop()}`;
  first(document, "#own-avatar").replaceChildren(...(avatar_url ? [image] : []));
  first(document, "[data-action=delete-avatar]").hidden = avatar_url === null;
}
