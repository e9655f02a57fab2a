// Takes what changed every two seconds. The server has escaped all of it.
"use strict";
const live = document.getElementById("live");
const stale = document.getElementById("stale");

async function turn() {
  const reading = !getSelection().isCollapsed; // Somebody copies text: it stays until that is done.
  if (!document.hidden && !reading) {
    try {
      const answer = await fetch(live.dataset.from, { cache: "no-store", signal: AbortSignal.timeout(5000) });
      if (!answer.ok) throw new Error(answer.status);
      live.innerHTML = await answer.text();
      stale.hidden = true;
    } catch (error) {
      stale.hidden = false;
    }
  }
  setTimeout(turn, 2000);
}
setTimeout(turn, 2000);
