"use strict";

const { ui, trace, title } = document.body.dataset;
const show = (id) => {
  for (const section of document.querySelectorAll("main > section")) section.hidden = section.id !== id;
};

// The UI keeps a copy of each trace in the browser's cache storage. Another program may get this port later, and its
// pages could read the copy. So the copy goes when the page does.
const forget = () => globalThis.caches?.delete("cached_traces");
addEventListener("pagehide", forget);

const showOffline = () => {
  const frame = document.createElement("iframe");
  frame.title = title;
  // Losses are at the top, and all groups of tracks are open, but for that of clocks and the like.
  const commands = [
    { id: "dev.perfetto.PinTracksByRegex", args: ["^losses of "] },
    { id: "dev.perfetto.ExpandTracksByRegex", args: ["^(?!System$)"] },
  ];
  const args = { url: new URL(trace, location.href), startupCommands: JSON.stringify(commands) };
  const route = Object.entries(args).map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&");
  frame.src = `ui/index.html#!/?${route}`;
  document.querySelector("main").hidden = true;
  document.body.append(frame);
};

// The documented way to hand a trace to the online UI: PING until it answers PONG, then the bytes.
const openOnline = () => {
  const state = document.getElementById("state");
  const other = window.open(ui);
  if (!other) {
    state.textContent = "The browser has blocked the window. Please press the button, or allow windows of this page.";
    return;
  }
  const ping = setInterval(() => other.postMessage("PING", ui), 100);
  const onMessage = async (message) => {
    if (message.origin !== ui || message.source !== other || message.data !== "PONG") return;
    clearInterval(ping);
    removeEventListener("message", onMessage);
    try {
      const answer = await fetch(trace);
      if (!answer.ok) throw new Error(`the server answers ${answer.status}`);
      const buffer = await answer.arrayBuffer();
      other.postMessage({ perfetto: { buffer, title, fileName: `${title}.perfetto-trace` } }, ui, [buffer]);
      state.textContent = "The trace is in the other window.";
    } catch (error) {
      state.textContent = `The trace cannot be read: ${error.message}. Is eventring still running?`;
    }
  };
  addEventListener("message", onMessage);
};

// What is missing stays in sight beside the trace.
const showProblems = (problems) => {
  const list = document.getElementById("problems");
  for (const problem of problems) list.appendChild(document.createElement("p")).textContent = problem;
  list.hidden = problems.length === 0;
};

const showTrace = ({ data }) => {
  showProblems(JSON.parse(data).problems);
  if (ui) {
    show("online");
    document.getElementById("open").addEventListener("click", openOnline);
    openOnline();
  } else {
    forget();
    showOffline();
  }
};

// The stream says how far the conversion of the capture is. The server ends when the stream has been closed for some
// seconds.
const alive = new EventSource("alive");
alive.addEventListener("converting", ({ data }) => {
  const { text, percent } = JSON.parse(data);
  document.getElementById("step").textContent = `${text}: ${percent} %`;
  document.querySelector("progress").value = percent;
  show("converting");
});
alive.addEventListener("ready", showTrace, { once: true });
alive.addEventListener("failed", () => {
  alive.close();
  show("failed");
});
