// Whether a file is an animation, by its first bytes: a canvas would keep only one of its frames.

const SEQUENCES = new Set(["avis", "msf1"]); // the brands of AVIF and HEIF with several frames

/** @param {Uint8Array} bytes of a whole file */
export function isAnimated(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const text = (start) => String.fromCharCode(...bytes.subarray(start, start + 4));
  if (text(0) === "GIF8") return true; // or a still image, which the service takes as well
  if (text(0) === "RIFF") return text(12) === "VP8X" && (bytes[20] & 2) !== 0;
  if (text(4) === "ftyp") {
    for (let place = 8; place < Math.min(view.getUint32(0), bytes.length); place += 4)
      if (SEQUENCES.has(text(place))) return true;
    return false;
  }
  if (text(0) !== "\x89PNG") return false;
  let place = 8;
  while (place + 8 <= bytes.length && text(place + 4) !== "IDAT") {
    if (text(place + 4) === "acTL") return true;
    place += 12 + view.getUint32(place);
  }
  return false;
}
