// The page: requests, editor and lessons at the left, the drawing of one request
// at the right. What is open stands in the URL.

import { arrowKeys, duration, el } from "./dom.js";
import { lessons } from "./lessons.js";
import { List, isWrite } from "./list.js";
import { Drawing } from "./pipeline.js";
import { Editor } from "./send.js";
import { copyButton, stagePanel } from "./stage.js";
import { Stream } from "./stream.js";
import { currentLanguage, pick, setLanguage, t } from "./text.js";

const base = new URL(".", location.href);
const table = await (await fetch(new URL("stages", base))).json();
const stream = new Stream(base);
const title = (name) => pick(table.find((row) => row.name === name)?.title ?? { en: name, zh: name });
const list = new List(stream, title, (name) => open(name));
const editor = new Editor(stream, (name) => open(name));
const drawing = new Drawing(table, (name, stage) => {
  if (name) list.stopFollowing();
  open(name, stage);
});

let tab = "requests";
let drawnFor = ""; // the name of the trace that is drawn
let drawnStage = "";
let asked = 0; // how many drawings were asked for
let drawn = 0; // which of them is to be seen

const side = el("div", { class: "side" });
const header = el("header", { class: "top" });
const main = el("main", {});
const panel = el("div", { class: "dock" });
document.body.append(header, el("div", { class: "page" }, side, el("div", { class: "stage" }, main, panel)));

function at() {
  const parameters = new URLSearchParams(location.hash.slice(1));
  return { trace: parameters.get("trace") ?? "", stage: parameters.get("stage") ?? "" };
}

/** open shows a trace, and a stage of it if one is named. */
function open(trace, stage) {
  location.hash = new URLSearchParams(Object.entries({ trace, stage }).filter(([, value]) => value)).toString();
}

function drawHeader() {
  const { state, message, reason } = stream.connection;
  const why = { NotFound: "lostNotFound", Forbidden: "lostForbidden" }[reason] ?? "lost";
  const connection = { live: `● ${t("live")}`, connecting: `○ ${t("connecting")}`, lost: `✕ ${t(why)} ${message ?? ""}` }[state];
  const language = el("div", { class: "languages", role: "group", "aria-label": t("language") }, [["en", "EN"], ["zh", "中文"]].map(([code, name]) =>
    el("button", {
      type: "button", lang: code, "aria-pressed": String(currentLanguage() === code),
      onclick: () => {
        setLanguage(code);
        drawAll();
        header.querySelector("[aria-pressed=true]").focus();
      },
    }, name)));
  header.replaceChildren(el("h1", {}, t("title"), el("span", {}, t("subtitle"))),
    el("span", { class: `connection ${state}`, role: "status" }, connection), language);
}

function openTab(name) {
  tab = name;
  drawSide();
  side.querySelector("[aria-selected=true]").focus();
}

function drawSide() {
  const tabs = { requests: ["tabRequests", () => list.element], send: ["tabSend", () => editor.element], lessons: ["tabLessons", () => lessonsElement] };
  const bar = el("div", { class: "tabs", role: "tablist" }, Object.entries(tabs).map(([name, [key]]) =>
    el("button", {
      type: "button", role: "tab", "aria-selected": String(tab === name),
      onclick: () => openTab(name),
    }, t(key))));
  arrowKeys(bar, "[role=tab]");
  side.replaceChildren(bar, tabs[tab][1]());
}

const subscriptions = []; // of the lessons
let lessonsElement;

function drawLessons() {
  while (subscriptions.length) subscriptions.pop()();
  const page = {
    subscribe: (listener) => {
      subscriptions.push(stream.subscribe(listener));
      return subscriptions.at(-1);
    },
    summaries: () => stream.ordered(),
    trace: (name) => stream.trace(name),
    open,
    write: (text, verb) => {
      editor.write(text, verb);
      openTab("send");
    },
  };
  lessonsElement = el("section", { class: "lessons", role: "tabpanel" }, lessons.map((lesson) => el("article", {}, el("h2", {}, pick(lesson.title)), lesson.draw(page))));
}

function about(trace) {
  const { request, response, user } = trace;
  const query = request.parameters?.length ? `?${request.parameters.join("&")}` : "";
  const isRefused = response.code >= 400 || !response.code;
  return el("section", { class: "about-request" },
    el("h2", {}, el("b", {}, request.method), " ", el("code", {}, request.path, el("span", { class: "query" }, query))),
    el("p", { class: "facts" },
      el("span", { class: "chip" }, request.verb),
      el("span", { class: `chip ${isRefused ? "refused" : "good"}` }, `${isRefused ? "✕" : "✓"} ${response.code || "—"} ${response.reason ?? ""}`),
      el("span", { title: user?.groups?.join(", ") }, t("by", user?.name ?? t("anonymous"))),
      user?.impersonatedBy && el("span", {}, t("impersonatedBy", user.impersonatedBy)),
      el("span", {}, t("took", duration(response.durationMicroseconds))),
      el("span", {}, t("onReplica", trace.replica)),
      copyButton(() => location.href, "copyLink")),
    response.stoppedAt && el("p", { class: "callout refused" }, el("b", {}, `✕ ${t("stopped", title(response.stoppedAt))}`), response.message && ` ${response.message}`),
    response.warnings?.map((warning) => el("p", { class: "callout warned" }, el("b", {}, `! ${t("warning")}`), ` ${warning}`)),
    trace.cause && el("p", { class: "callout" }, `↳ ${t("causeOf")} `, el("a", { href: `#${new URLSearchParams({ trace: trace.cause })}` }, t("openCause"))));
}

async function drawMain() {
  const { trace: name, stage } = at();
  const turn = ++asked;
  list.select(name);
  let shown;
  let problem;
  try {
    shown = name && (await stream.trace(name));
  } catch (error) {
    problem = error.message;
  }
  if (turn < drawn || name !== at().trace || stage !== at().stage) return; // a newer state came first, or another was opened
  drawn = turn;
  const isOther = name !== drawnFor;
  drawnFor = name;
  const focused = main.contains(document.activeElement) ? document.activeElement.dataset.place : undefined;
  const head = shown ? about(shown)
    : problem ? el("p", { class: "callout refused" }, `✕ ${problem}`)
      : el("section", { class: "about-request" }, el("h2", {}, t(name ? "traceMissing" : "welcome")), !name && el("p", { class: "facts" }, t("welcomeHow")));
  main.replaceChildren(head, drawing.draw(shown || undefined, stage));
  if (isOther) main.scrollTop = 0;
  if (focused) main.querySelector(`.box[data-place="${CSS.escape(focused)}"]`)?.focus();
  const read = isOther ? 0 : panel.querySelector(".content")?.scrollTop;
  panel.replaceChildren(stage ? stagePanel(shown, stage, table, () => open(name)) : "");
  if (read && stage === drawnStage) panel.querySelector(".content").scrollTop = read;
  drawnStage = stage;
  if (stage) main.querySelector(`.box[data-place="${CSS.escape(stage)}"]`)?.scrollIntoView({ block: "nearest" });
}

function drawAll() {
  document.documentElement.lang = currentLanguage();
  document.title = t("title");
  drawHeader();
  list.draw();
  editor.draw();
  drawLessons();
  drawSide();
  drawMain();
}

stream.subscribe((change) => {
  if (change.type === "state" || change.type === "connection") drawHeader();
  if (change.type === "state" || change.summary?.name === at().trace) drawMain();
  if (!list.follow || list.paused) return;
  if (change.type === "trace" && change.isNew && isWrite(change.summary)) open(change.summary.name);
  if (change.type === "state") {
    const last = stream.ordered().findLast(isWrite);
    if (last && !(at().trace && change.before.has(last.name))) open(last.name);
  }
});

addEventListener("hashchange", drawMain);
addEventListener("keydown", (event) => {
  if (event.key === "Escape" && at().stage) open(at().trace);
});

list.follow = !at().trace; // who came by a link wants to see just that
drawAll();
