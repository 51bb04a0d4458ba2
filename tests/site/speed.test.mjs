// How long an interaction with the comparing page takes until its outcome is painted. The figures are printed; how fast
// the machine is decides them, so that only a page that hangs fails.
import assert from "node:assert/strict";
import { test } from "node:test";

import { computed, visit } from "./page.mjs";

const TIMES = 7;
/** Milliseconds. */
const HANGS = 5000;

const INTERACTIONS = {
    "move the limit's slider": (i) => {
        const slider = document.querySelector("[data-of=limit]");
        slider.value = 60 + i;
        slider.dispatchEvent(new Event("input", { bubbles: true }));
    },
    "choose a traffic": (i) => document.querySelectorAll("[name=shape]")[(i + 1) % 2].click(),
    "choose a period": (i) => document.querySelectorAll("[name=period]")[i % 3].click(),
    "pin a strategy": (i) => document.querySelectorAll(`.pin[aria-pressed=false]`)[i % 2].click(),
    "send a request": () => document.getElementById("send").click(),
    "move the play head": (i) => {
        const head = document.getElementById("head");
        head.value = 5e6 * (i + 1);
        head.dispatchEvent(new Event("input", { bubbles: true }));
    },
};

/** Runs in the page: from an interaction until the frame after all canvases have been drawn with its outcome. */
async function painted([act, i]) {
    const drawn = new Set(), canvases = document.querySelectorAll("canvas");
    const sized = new MutationObserver((records) => records.forEach(({ target }) => drawn.add(target)));
    for (const canvas of canvases) sized.observe(canvas, { attributeFilter: ["width"] });
    const began = performance.now();
    new Function(`return ${act}`)()(i);
    const frame = () => new Promise((next) => requestAnimationFrame(next));
    do await frame(); while (drawn.size < canvases.length || document.getElementById("stage").ariaBusy === "true");
    await new Promise((after) => setTimeout(after));
    sized.disconnect();
    return performance.now() - began;
}

test("an interaction is painted soon", (context) =>
    visit({}, async (tab) => {
        const all = [];
        for (const [name, act] of Object.entries(INTERACTIONS)) {
            const times = [];
            for (let i = 0; i < TIMES; i += 1) {
                times.push(await tab.evaluate(painted, [String(act), i]));
                await computed(tab);
            }
            times.sort((a, b) => a - b);
            context.diagnostic(`${name}: painted after ${[0, TIMES >> 1, TIMES - 1].map((i) => `${times[i].toFixed(0)} ms`).join(", ")} (least, median, most)`);
            all.push(...times);
        }
        assert.equal(all.length, TIMES * Object.keys(INTERACTIONS).length);
        assert.ok(Math.max(...all) < HANGS, `${Math.max(...all)} ms`);
    }));
