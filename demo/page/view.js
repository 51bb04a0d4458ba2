// Elements: found, made, and copied from templates.
const by = (id) => document.getElementById(id);
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const filled = (element, inside) => { element.append(...inside); return element; };
const made = (name, given, ...inside) => filled(Object.assign(document.createElement(name), given), inside);
const cloned = (template) => by(template).content.cloneNode(true).firstElementChild;
const part = (whole, ...selectors) => selectors.map((selector) => whole.querySelector(selector));

// The view is what the address says after its #. Controls change that, and so does the back button.
// Then what the page shows follows it: show() or recompute().
const root = document.documentElement;
const FAMILIES = all("[name=family]").map(({ value }) => value);
let choices, view;
// What was typed and is not in the view yet, by the names of numbers; which one is no number that can be, so far; which
// ones the view was changed by last.
let typed = {}, unfinished = null, lastNumbers = "";

function read(fragment) {
    const given = new URLSearchParams(fragment);
    const read = { ...choices.defaults, shared: given.get("shared") === "true", family: FAMILIES, card: given.get("card") };
    for (const { name, least, most } of choices.ranges) {
        const number = Math.round(given.get(name)?.trim() || NaN);
        if (!Number.isNaN(number)) read[name] = Math.min(most, Math.max(least, number));
    }
    if (!all("[name=period]").some(({ value }) => Number(value) === read.period)) read.period = choices.defaults.period;
    if (choices.shapes.some(({ id }) => id === given.get("shape"))) read.shape = given.get("shape");
    const family = FAMILIES.filter((family) => given.get("family")?.split(",").includes(family));
    return family.length ? { ...read, family } : read;
}

function write({ shape, shared, family, card, ...numbers }) {
    const changed = Object.entries(numbers).filter(([name, value]) => value !== choices.defaults[name]);
    const words = [["shape", shape], ...changed];
    if (shared) words.push(["shared", true]);
    if (family.length < FAMILIES.length) words.push(["family", family]);
    if (card) words.push(["card", card]);
    return `#${words.map((word) => word.join("=")).join("&")}`;
}

// Whatever changes takes along what was typed before it. Other values of the same numbers replace the view; everything
// else is a view to come back to.
function change(changes, numbers = "") {
    const fragment = write({ ...view, ...typed, ...changes, card: null });
    typed = {};
    if (fragment === write({ ...view, card: null })) return showControls();
    if (numbers && numbers === lastNumbers) history.replaceState(null, "", fragment);
    else history.pushState(null, "", fragment);
    lastNumbers = numbers;
    turn(fragment);
}

// Somebody went to another address; not change, which is silent.
function follow() {
    [typed, unfinished, lastNumbers] = [{}, null, ""];
    turn(location.hash);
}

function turn(fragment) {
    const question = ({ family, card, ...numbers } = {}) => JSON.stringify(numbers);
    const before = question(view);
    view = read(fragment.slice(1));
    showControls();
    if (question(view) === before) show(); else recompute();
}

// Controls.
const inputs = (name) => all(`.number [name=${name}], [data-of=${name}]`);

function makeControls() {
    const option = ({ id, title }) => made("label", {}, made("input", { type: "radio", name: "shape", value: id }), title);
    by("shape").querySelector(".options").append(...choices.shapes.map(option));
    by("period").before(...choices.ranges.filter(({ name }) => name !== "period").map(makeNumber));
    const form = by("controls");
    form.oninput = ({ target }) => (target.closest(".number") ? setNumber(target) : choose(target));
    form.onchange = ({ target }) => { if (target.type === "number") finish(); };
    form.onreset = () => { unfinished = null; change({ ...choices.defaults, family: FAMILIES }); return false; };
}

function makeNumber({ name, label, unit, least: min, most: max }) {
    const number = cloned("number");
    const [title, field, says, slider] = part(number, "label", "[type=number]", ".value span", "[type=range]");
    Object.assign(title, { htmlFor: name, textContent: label });
    Object.assign(field, { id: name, name, min, max });
    field.setAttribute("aria-describedby", `${name}-unit`);
    Object.assign(says, { id: `${name}-unit`, textContent: unit });
    Object.assign(slider, { min, max, ariaLabel: `${label}, ${unit}` });
    slider.dataset.of = name;
    return number;
}

function setNumber(input) {
    const name = input.name || input.dataset.of;
    unfinished = input.value && input.validity.valid ? null : name;
    delete typed[name];
    if (unfinished) return;
    typed[name] = Number(input.value);
    for (const other of inputs(name)) if (other !== input) other.value = input.value;
    clearTimeout(setNumber.soon);
    setNumber.soon = setTimeout(takeTyped, 150);
}

const takeTyped = () => change({}, Object.keys(typed).join());
const finish = () => { unfinished = null; takeTyped(); };

function choose({ name, value }) {
    const checked = all("[name=family]:checked").map(({ value }) => value);
    const values = { shape: value, shared: value === "true", period: Number(value), family: checked.length ? checked : FAMILIES };
    change({ [name]: values[name] });
}

const shape = ({ shape }) => choices.shapes.find(({ id }) => id === shape);

function showControls() {
    const numbers = choices.ranges.filter(({ name }) => name !== unfinished);
    for (const { name } of numbers) for (const input of inputs(name)) input.value = view[name];
    for (const input of all("[type=radio]")) input.checked = input.value === String(view[input.name]);
    for (const input of all("[name=family]")) input.checked = view.family.includes(input.value);
    by("shape").querySelector(".story").textContent = shape(view).story;
    by("shared").hidden = view.shape !== "abuser";
}
