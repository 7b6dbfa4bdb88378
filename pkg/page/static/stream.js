// What the server tells of traces: summaries as they come, whole ones on demand.

/** Stream keeps the summaries of all traces. */
export class Stream {
  constructor(base) {
    this.base = base;
    this.summaries = new Map();
    this.connection = { state: "connecting" };
    this.listeners = new Set();
    this.whole = new WeakMap(); // by the summary that was the latest when it was asked for
    document.addEventListener("visibilitychange", () => this.connect());
    this.connect();
  }

  /** connect begins anew, and only while somebody looks: a browser has six
   * connections to a server for all its tabs, and each stream takes one. */
  connect() {
    this.source?.close();
    if (document.hidden) return;
    const source = new EventSource(new URL("events", this.base));
    this.source = source;
    source.addEventListener("state", (event) => {
      const before = this.summaries;
      this.summaries = new Map(JSON.parse(event.data).map((summary) => [summary.name, summary]));
      this.connection = { state: "live" };
      this.tell({ type: "state", before });
    });
    source.addEventListener("trace", (event) => {
      const summary = JSON.parse(event.data);
      const isNew = !this.summaries.has(summary.name);
      this.summaries.set(summary.name, summary);
      this.tell({ type: "trace", summary, isNew });
    });
    source.addEventListener("gone", (event) => {
      const name = JSON.parse(event.data);
      this.summaries.delete(name);
      this.tell({ type: "gone", name });
    });
    source.addEventListener("problem", (event) => {
      this.connection = { state: "lost", ...JSON.parse(event.data) };
      this.tell({ type: "connection" });
    });
    source.addEventListener("error", () => {
      this.connection = { ...this.connection, state: "lost" };
      this.tell({ type: "connection" });
    });
  }

  tell(change) {
    for (const listener of this.listeners) listener(change);
  }

  /** subscribe calls back with {type: state|trace|gone|connection, before, summary,
   * isNew, name}, and returns what ends that. before are the summaries there were. */
  subscribe(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** ordered are the summaries, the oldest first: news of a request that goes on
   * may come before that of its cause. */
  ordered() {
    return [...this.summaries.values()].sort((a, b) => (a.startTime < b.startTime ? -1 : a.startTime > b.startTime ? 1 : 0));
  }

  /** trace fetches a whole trace in its latest state; null if there is none. */
  async trace(name) {
    // Each change brings another summary. Versions would not do: a watch may tell
    // of a change with a lower one than the trace has.
    const summary = this.summaries.get(name);
    const known = this.whole.get(summary);
    if (known) return known;
    const response = await fetch(new URL(`traces/${encodeURIComponent(name)}`, this.base));
    if (response.status === 404) return null;
    const body = await response.json();
    if (!response.ok) throw new Error(body.message);
    if (summary) this.whole.set(summary, body);
    return body;
  }

  /** arrival waits until a trace is there; false if it does not come in time. */
  arrival(name, milliseconds) {
    if (this.summaries.has(name)) return Promise.resolve(true);
    return new Promise((resolve) => {
      const end = (came) => {
        clearTimeout(timer);
        unsubscribe();
        resolve(came);
      };
      const timer = setTimeout(() => end(false), milliseconds);
      const unsubscribe = this.subscribe(() => this.summaries.has(name) && end(true));
    });
  }
}
