/** The server's key, where it wants one: asked for once, kept until the window is closed. */

const NAME = "geocalib-key";

let asking = null;

/** What to send along with each request. */
export function keyHeaders() {
  const key = sessionStorage.getItem(NAME);
  return key ? { "X-API-Key": key } : {};
}

/** Asks for the key; whether one was given. Several requests that wait ask once. */
export function askKey() {
  asking ??= new Promise((done) => {
    const dialog = document.getElementById("key");
    dialog.addEventListener(
      "close",
      () => {
        asking = null;
        const key = dialog.returnValue === "give" ? document.getElementById("key-text").value : "";
        sessionStorage.setItem(NAME, key);
        done(key !== "");
      },
      { once: true },
    );
    dialog.showModal();
  });
  return asking;
}
