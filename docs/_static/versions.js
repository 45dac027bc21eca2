/* Fill the list of versions from versions.json, which lies beside the folders of all versions. */
document.addEventListener("DOMContentLoaded", async () => {
  const list = document.getElementById("versions");
  if (!list || !location.protocol.startsWith("http")) return;
  const root = new URL("../", new URL(document.documentElement.dataset.content_root, location));
  const answer = await fetch(new URL("versions.json", root));
  if (!answer.ok) return; // one version alone, not published beside others
  const here = list.dataset.version;
  for (const name of await answer.json())
    if (name !== here) list.add(new Option(name, name));
  list.addEventListener("change", () => {
    location = new URL(`${list.value}/`, root);
  });
});
