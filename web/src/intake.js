/** Photos in: dropped, pasted, chosen or taken. */

const isImage = (file) => file.type.startsWith("image/") || file.type === "";

/** take: called with a list of files. page: where they may be dropped. */
export function intake(page, take) {
  const pass = (files) => {
    if (files.length > 0) take(files);
  };
  for (const input of page.querySelectorAll("input[type=file]")) {
    input.addEventListener("change", () => {
      pass([...input.files]);
      input.value = "";
    });
  }
  for (const button of page.querySelectorAll("[data-opens]")) {
    button.addEventListener("click", () => document.getElementById(button.dataset.opens).click());
  }

  let depth = 0;
  const carriesFiles = (event) => event.dataTransfer?.types.includes("Files");
  const over = (entered) => (event) => {
    if (!carriesFiles(event)) return;
    event.preventDefault();
    depth += entered;
    page.classList.toggle("dropping", depth > 0);
  };
  page.addEventListener("dragenter", over(1));
  page.addEventListener("dragleave", over(-1));
  page.addEventListener("dragover", (event) => carriesFiles(event) && event.preventDefault());
  page.addEventListener("drop", (event) => {
    if (!carriesFiles(event)) return;
    event.preventDefault();
    depth = 0;
    page.classList.remove("dropping");
    pass([...event.dataTransfer.files]);
  });
  document.addEventListener("paste", (event) => {
    pass([...(event.clipboardData?.files ?? [])].filter(isImage));
  });
}
