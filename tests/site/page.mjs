// What the tests of the comparing page share: the page as tools/page built it, opened in a browser that is there as
// long as they run, and what its cards must say.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before } from "node:test";
import { pathToFileURL } from "node:url";

import { launch, open, root, serve } from "./browser.mjs";

const folder = join(root, "target/page");

export let browser, server;

before(async () => {
    browser = await launch();
    server = await serve(folder);
});

after(async () => {
    server?.stop();
    await browser?.close();
});

export const ORIGINS = {
    "a file": () => pathToFileURL(join(folder, "compare.html")).href,
    "a server": () => `${server.origin}/compare.html`,
};

/** The page with this view, once it has computed; `then` gets the tab, which must have had no fault in the end. */
export async function visit({ from = "a file", view = "", size, theme, first }, then) {
    const tab = await open(browser, size, theme);
    if (first) await tab.addInitScript(first);
    await tab.goto(ORIGINS[from]() + (view && `#${view}`));
    await computed(tab);
    await then(tab);
    assert.deepEqual(tab.faults, []);
    await tab.context().close();
}

export const computed = (tab) => tab.waitForSelector('#stage[aria-busy="false"] ~ #results[aria-busy="false"]', { state: "attached" });
export const fragment = (tab) => tab.evaluate(() => location.hash);
export const card = (tab, id) => tab.locator(`[data-strategy="${id}"]`);
export const words = async (tab, id) => (await card(tab, id).locator(".words").innerText()).replaceAll("\u00a0", " ");
export const charts = (tab) => tab.$$eval(".picture", (all) => all.map((picture) => picture.innerHTML));
export const count = (number) => number.toLocaleString("en");
/** Until the card of a strategy says so. */
export const shown = (tab, [id, expected]) =>
    tab.waitForFunction(([id, words]) => document.querySelector(`[data-strategy="${id}"] .words`)?.textContent.replaceAll("\u00a0", " ").includes(words), [id, expected]);
/** What the page's arithmetic makes of settings. */
export const trials = async (tab, given = {}) => (await tab.evaluate((given) => window.ratelimit.trials(given), given)).trials;

/** What a card must say of a trial, reckoned here. */
export function told({ figures: { all, peak } }, { period = 10_000, whose = "" } = {}) {
    return `${count(all.admitted)} of ${count(all.offered)} requests admitted, at most ${count(peak)}${whose} within any ${period / 1000} s`;
}
