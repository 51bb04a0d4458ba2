// How the comparing page looks: to everybody, in both themes, in windows of every width, alone and in the site's frame.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import axe from "axe-core";

import { open, serve, shoot, site } from "./browser.mjs";
import { browser, card, computed, ORIGINS, visit } from "./page.mjs";

const SIZES = ["desktop", "phone"];
const THEMES = ["light", "dark"];

let book;

before(async () => {
    book = await serve(site);
});

after(() => book?.stop());

for (const size of SIZES) {
    for (const theme of THEMES) {
        test(`axe finds nothing, ${size}, ${theme}`, () =>
            visit({ from: "a server", view: "shape=abuser", size, theme }, async (tab) => {
                await card(tab, "gcra").locator("summary").press("Enter");
                await tab.evaluate(axe.source);
                const { violations } = await tab.evaluate(() => window.axe.run());
                assert.deepEqual(violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.target.join(" ")).join(", ")}`), []);
            }));
    }
}

test("nothing scrolls sideways on a phone, not on a small one either", () =>
    visit({ size: "phone", view: "shape=abuser" }, async (tab) => {
        for (const width of [390, 320]) {
            await tab.setViewportSize({ width, height: 800 });
            for (const shape of ["abuser", "rising", "edge"]) {
                await tab.evaluate((shape) => { location.hash = `shape=${shape}`; }, shape);
                await tab.waitForSelector(`:root[data-shape=${shape}]`);
                const wide = await tab.evaluate(() =>
                    [...document.querySelectorAll("body *:not(.unseen)")]
                        .filter((element) => element.getBoundingClientRect().right > innerWidth + 0.5)
                        .map((element) => `${element.localName}.${element.className.baseVal ?? element.className} ${element.textContent.slice(0, 30)}`));
                assert.deepEqual(wide, [], `${shape} at ${width}`);
                assert.ok((await tab.evaluate(() => document.scrollingElement.scrollWidth)) <= width);
            }
        }
    }));

test("on a phone the chart comes before the controls; where there is room they stand beside it", () =>
    visit({ size: "phone" }, async (tab) => {
        const place = (id) => tab.locator(id).boundingBox();
        const [stage, controls, results] = [await place("#stage"), await place("#controls"), await place("#results")];
        assert.ok(stage.y < 230 && controls.y >= stage.y + stage.height && results.y >= controls.y + controls.height);
        // Both charts begin in the first screen.
        const { y } = await tab.locator(".flow").last().boundingBox();
        assert.ok(y < 800, `the second chart begins at ${y}`);
        await tab.setViewportSize({ width: 1280, height: 900 });
        const [beside, left] = [await place("#stage"), await place("#controls")];
        assert.ok(left.x + left.width < beside.x && Math.abs(left.y - beside.y) < 30);
        // All of the stage is in the first screen.
        assert.ok(beside.y + beside.height < 900);
    }));

for (const theme of THEMES) {
    test(`focus is to be seen at every stop, ${theme}`, () =>
        visit({ view: "shape=abuser", theme }, async (tab) => {
            for (let stop = 0; stop < 60; stop += 1) {
                await tab.keyboard.press("Tab");
                const seen = await tab.evaluate(() => {
                    const drawn = [document.activeElement, document.activeElement.closest("label")].filter(Boolean).map(getComputedStyle);
                    return document.activeElement === document.body || drawn.some((style) => style.outlineStyle !== "none" && Number.parseFloat(style.outlineWidth) >= 2);
                });
                assert.ok(seen, await tab.evaluate(() => document.activeElement.outerHTML.slice(0, 200)));
            }
        }));

    // Each colour of a chart against what is behind it, as WCAG reckons contrast.
    test(`lines and areas stand out from their background, ${theme}`, () =>
        visit({ view: "shape=abuser", theme }, async (tab) => {
            const contrasts = await tab.evaluate(() => {
                const light = (color) => {
                    const [r, g, b] = color.match(/[\d.]+/g).map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
                    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
                };
                const contrast = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
                const behind = getComputedStyle(document.querySelector(".card")).backgroundColor;
                const of = (kind, property) => getComputedStyle(document.querySelector(`.${kind}`))[property];
                const kinds = [["offered", "stroke"], ["through", "fill"], ["abuser", "fill"], ["work", "fill"], ["limit", "stroke"]];
                return kinds.map(([kind, property]) => [kind, contrast(of(kind, property), behind)]);
            });
            for (const [kind, contrast] of contrasts) assert.ok(contrast >= 3, `${kind}: ${contrast.toFixed(2)}`);
        }));
}

const PLACES = {
    alone: async (tab) => {
        await tab.goto(ORIGINS["a server"]());
        return tab;
    },
    "in the site's frame": async (tab) => {
        await tab.goto(`${book.origin}/index.html`);
        return (await tab.locator("#compare").elementHandle()).contentFrame();
    },
};

for (const [place, go] of Object.entries(PLACES)) {
    test(`no text of a chart lies on another, ${place}`, async () => {
        const tab = await open(browser);
        const page = await go(tab);
        await computed(page);
        const shapes = await page.$$eval("[name=shape]", (all) => all.map(({ value }) => value));
        const views = [...shapes.map((shape) => `#shape=${shape}`), "#shape=abuser&shared=true"];
        const found = [];
        for (const width of [1280, 1024, 700, 390, 320]) {
            await tab.setViewportSize({ width, height: 900 });
            for (const view of views) {
                await page.evaluate((view) => { location.hash = view; }, view);
                await page.waitForFunction(isDrawn, view);
                found.push(...(await page.evaluate(overlaps)).map((texts) => `${view} at ${width}: ${texts}`));
            }
        }
        assert.deepEqual(found, []);
        assert.deepEqual(tab.faults, []);
        await tab.context().close();
    });
}

// Runs in the page: whether its charts are this view's, and as wide as their cards.
function isDrawn(view) {
    const [given, { shape, each }] = [new URLSearchParams(view.slice(1)), document.documentElement.dataset];
    const picture = document.querySelector(".picture");
    return given.get("shape") === shape && (shape !== "abuser" || given.has("shared") === (each === undefined))
        && document.getElementById("results").ariaBusy === "false"
        && Math.abs(picture.firstChild.viewBox.baseVal.width - picture.clientWidth) <= 4;
}

// Runs in the page.
function overlaps() {
    const within = (chart) => {
        const texts = [...chart.querySelectorAll("text")].map((text) => [text.textContent, text.getBoundingClientRect()]);
        const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
        return texts.flatMap(([one, a], i) => texts.slice(i + 1).filter(([, b]) => meet(a, b)).map(([other]) => `${one} on ${other}`));
    };
    return [...new Set([...document.querySelectorAll(".chart")].flatMap(within))];
}

for (const [name, options] of [["compare", {}], ["compare-all", { fullPage: true }]]) {
    test(`screenshots, ${name}`, () =>
        shoot(browser, name, async (tab) => {
            await tab.goto(`${ORIGINS["a file"]()}#shape=edge`);
            await computed(tab);
        }, options));
}
