// Takes what changed every two seconds. The server has escaped all of it.
"use strict";
const live = document.getElementById("live");
const stale = document.getElementById("stale");
const noAnswer = stale.textContent;
const longestPause = 30000; // Milliseconds. What is shown is then too old to be taken for what is.
let selectedSince = null;

function say(text) {
  stale.textContent = text;
  stale.hidden = text === "";
}

// Somebody copies text: it stays until that is done.
function isPaused() {
  const selection = getSelection();
  if (selection.isCollapsed || !selection.containsNode(live, true)) selectedSince = null;
  else selectedSince ??= Date.now();
  return selectedSince !== null && Date.now() - selectedSince < longestPause;
}

function show(text) {
  const focused = live.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  live.innerHTML = text;
  const links = [...live.querySelectorAll("a")];
  if (focused !== null) links.find(link => link.getAttribute("href") === focused)?.focus({ preventScroll: true });
}

async function turn() {
  if (isPaused()) {
    say("paused while text is selected");
  } else if (!document.hidden) {
    try {
      const answer = await fetch(live.dataset.from, { cache: "no-store", signal: AbortSignal.timeout(5000) });
      if (!answer.ok) throw new Error(answer.status);
      show(await answer.text());
      say("");
    } catch (error) {
      say(noAnswer);
    }
  }
  setTimeout(turn, 2000);
}
setTimeout(turn, 2000);
