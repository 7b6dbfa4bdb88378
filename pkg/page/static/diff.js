// Objects as YAML, and what changed from one to the next.

const order = ["apiVersion", "kind", "metadata", "spec", "status"];

/** toYAML writes an object as kubectl would. */
export function toYAML(value) {
  return lines(value, "", true).join("\n");
}

function lines(value, indent, isTop) {
  if (Array.isArray(value)) {
    return value.flatMap((item) => {
      const inner = lines(item, indent + "  ");
      return isLeaf(item) ? [`${indent}- ${scalar(item)}`] : [`${indent}- ${inner[0].trimStart()}`, ...inner.slice(1)];
    });
  }
  return keys(value, isTop).flatMap((key) => {
    const item = value[key];
    if (isLeaf(item)) return [`${indent}${scalar(key)}: ${scalar(item)}`];
    return [`${indent}${scalar(key)}:`, ...lines(item, Array.isArray(item) ? indent : indent + "  ")];
  });
}

function keys(object, isTop) {
  const all = Object.keys(object);
  if (!isTop) return all;
  return [...order.filter((key) => all.includes(key)), ...all.filter((key) => !order.includes(key))];
}

const isLeaf = (value) => value === null || typeof value !== "object" || Object.keys(value).length === 0;

function scalar(value) {
  if (value === null) return "null";
  if (typeof value === "object") return Array.isArray(value) ? "[]" : "{}";
  if (typeof value !== "string") return String(value);
  // What YAML would read as something else than this text.
  const isPlain = /^[A-Za-z/_][\w./ -]*(:[\w./-]+)*$/.test(value) && value.trim() === value && !/^(true|false|null|yes|no|on|off|y|n)$/i.test(value);
  return isPlain ? value : JSON.stringify(value);
}

/** changedFields names what differs in the metadata, the spec and the status of
 * two objects. */
export function changedFields(before, after) {
  return ["metadata", "spec", "status"].flatMap((part) => {
    const [a, b] = [before[part] ?? {}, after[part] ?? {}];
    return [...new Set([...Object.keys(a), ...Object.keys(b)])].filter((key) => JSON.stringify(a[key]) !== JSON.stringify(b[key]));
  });
}

// Above this many pairs of lines the two texts just stand one after the other.
const maxPairs = 4e6;

/** diffLines compares two texts; each line is {mark: "+"|"-"|" ", text}. */
export function diffLines(before, after) {
  const a = before.split("\n");
  const b = after.split("\n");
  if (a.length * b.length > maxPairs) return [...a.map((text) => ({ mark: "-", text })), ...b.map((text) => ({ mark: "+", text }))];
  // common[i][j] is how many lines a[i…] and b[j…] share in order.
  const common = Array.from({ length: a.length + 1 }, () => new Uint32Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      common[i][j] = a[i] === b[j] ? common[i + 1][j + 1] + 1 : Math.max(common[i + 1][j], common[i][j + 1]);
    }
  }
  const result = [];
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      result.push({ mark: " ", text: a[i++] });
      j++;
    } else if (j === b.length || (i < a.length && common[i + 1][j] >= common[i][j + 1])) {
      result.push({ mark: "-", text: a[i++] });
    } else {
      result.push({ mark: "+", text: b[j++] });
    }
  }
  return result;
}
