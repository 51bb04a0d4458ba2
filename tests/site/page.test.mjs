// The page that compares limiters, as .ci/page built it: in a browser, and its arithmetic against a real server.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { pathToFileURL } from "node:url";

import axe from "axe-core";

import { launch, open, root, serve } from "./browser.mjs";
import { startRedis } from "./redis.mjs";

const folder = join(root, "target/page");
const module = process.env.MODULE ?? join(root, "target/release/libredis_ratelimit.so");
const STRATEGIES = 18;
const SIZES = ["desktop", "phone"];
const THEMES = ["light", "dark"];

let browser, server, redis;

before(async () => {
    browser = await launch();
    server = await serve(folder);
    redis = await startRedis(module);
});

after(async () => {
    server?.stop();
    await redis?.stop();
    await browser?.close();
});

const ORIGINS = {
    "a file": () => pathToFileURL(join(folder, "compare.html")).href,
    "a server": () => `${server.origin}/compare.html`,
};

/** The page with this view, once it has computed; `then` gets the tab, which must have had no fault in the end. */
async function visit({ from = "a file", view = "", size, theme, first }, then) {
    const tab = await open(browser, size, theme);
    if (first) await tab.addInitScript(first);
    await tab.goto(ORIGINS[from]() + (view && `#${view}`));
    await computed(tab);
    await then(tab);
    assert.deepEqual(tab.faults, []);
    await tab.context().close();
}

const computed = (tab) => tab.waitForSelector('#results[aria-busy="false"]');
const fragment = (tab) => tab.evaluate(() => location.hash);
const card = (tab, id) => tab.locator(`[data-strategy="${id}"]`);
const words = async (tab, id) => (await card(tab, id).locator(".words").innerText()).replaceAll("\u00a0", " ");
const charts = (tab) => tab.$$eval(".picture", (all) => all.map((picture) => picture.innerHTML));
const count = (number) => number.toLocaleString("en");
const shown = async (tab, expected) => {
    await tab.waitForFunction(([id, words]) => document.querySelector(`[data-strategy="${id}"] .words`)?.textContent.replaceAll("\u00a0", " ").includes(words), expected);
};

/** What a card must say of a trial, reckoned here. */
function told({ figures: { all, peak } }, { period = 10_000, whose = "" } = {}) {
    return `${count(all.admitted)} of ${count(all.offered)} requests admitted, at most ${count(peak)}${whose} within any ${period / 1000} s`;
}

/** Heights of the steps of an area, a step for each of so many slots. */
function heights(svg, kind, slots = 120) {
    const [, path] = svg.match(new RegExp(`<path class="${kind}" d="([^"]+)"`));
    const [, left, bottom] = path.match(/^M([\d.]+) ([\d.]+)/).map(Number);
    const steps = [...path.matchAll(/V([\d.]+)H([\d.]+)/g)].map(([, y, x]) => [Number(y), Number(x)]);
    const width = (steps.at(-1)[1] - left) / slots;
    return Array.from({ length: slots }, (_, i) => bottom - steps.find(([, x]) => x > left + (i + 0.5) * width)[0]);
}

for (const from of Object.keys(ORIGINS)) {
    test(`every strategy has a chart, and the figures of its trial, from ${from}`, () =>
        visit({ from }, async (tab) => {
            const { trials } = await tab.evaluate(() => window.ratelimit.trials({}));
            assert.equal(trials.length, STRATEGIES);
            assert.equal(await tab.locator(".card").count(), STRATEGIES);
            assert.equal(await tab.locator("#overview tbody tr:has(td)").count(), STRATEGIES);
            for (const trial of trials) {
                const { id, name, command, tradeOff, figures } = trial;
                const text = (await card(tab, id).innerText()).replaceAll("\u00a0", " ");
                for (const part of [name, command, tradeOff, told(trial)]) assert.ok(text.includes(part), `${part} in: ${text}`);
                assert.ok((await card(tab, id).getByRole("img").getAttribute("aria-label")).replaceAll("\u00a0", " ").includes(told(trial)));
                const box = await card(tab, id).locator("path.through").first().boundingBox();
                assert.ok(box.height > 20 && box.width > 200, `${id}: ${JSON.stringify(box)}`);
                const row = tab.locator("#overview tr", { has: tab.getByRole("link", { name, exact: true }) });
                const cells = (await row.locator("td").allInnerTexts()).map((cell) => cell.replaceAll("\u00a0", " "));
                assert.ok(cells[0].startsWith(count(figures.all.admitted)), cells[0]);
                assert.ok(cells[1].startsWith(count(figures.peak)), cells[1]);
                assert.equal(cells[2] === "none", figures.wait === 0, cells[2]);
                assert.equal(cells[3], count(figures.atWork));
            }
            // Alone in a file there is no documentation beside it.
            assert.equal(await tab.locator(".foot a:visible").count(), from === "a file" ? 0 : STRATEGIES);
        }));
}

test("a chart's steps are as high as what was counted", () =>
    visit({}, async (tab) => {
        for (const given of [{ shape: "bursts" }, { shape: "abuser", shared: true }]) {
            const { trials } = await tab.evaluate((given) => window.ratelimit.trials({ ...given, width: 1000 }), given);
            for (const { id, series, svg } of trials) {
                const most = series.offered.indexOf(Math.max(...series.offered));
                const one = heights(svg, "offered")[most] / series.offered[most];
                for (const kind of ["offered", "through", ...(given.shape === "abuser" ? ["abuser"] : [])]) {
                    const drawn = heights(svg, kind);
                    const off = drawn.findIndex((height, i) => Math.abs(height - series[kind][i] * one) > 0.2);
                    assert.equal(off, -1, `${id}, ${kind}, slot ${off}: ${drawn[off]} for ${series[kind][off]}`);
                }
            }
        }
    }));

test("known consequences of the limiters", () =>
    visit({ view: "shape=edge" }, async (tab) => {
        const trial = async (given, id) => (await tab.evaluate((given) => window.ratelimit.trials(given), given)).trials.find((trial) => trial.id === id);
        const peak = async (shape, id) => (await trial({ shape }, id)).figures.peak;
        // Twice the limit of 100 passes around an edge that everybody knows; the log and the gate keep their promise.
        assert.equal(await peak("edge", "fixed-window-aligned"), 200);
        for (const shape of ["steady", "bursts", "edge", "slow", "abuser"]) assert.ok((await peak(shape, "sliding-log")) <= 100, shape);
        assert.equal(await peak("edge", "sliding-log"), 100);
        // A burst of 50 and the refill of 100 is the most that a bucket lets through.
        assert.ok((await peak("steady", "token-bucket")) <= 150);
        // One per 100 ms.
        assert.ok((await peak("steady", "uniform")) <= 100);
        for (const shape of ["steady", "slow"]) assert.equal((await trial({ shape }, "concurrent")).figures.atWork, 10);
        // A queue of 50 at 10 per second is 5 s long.
        const { wait } = (await trial({ shape: "bursts" }, "leaky-bucket")).figures;
        assert.ok(wait > 4000 && wait <= 5000, `${wait}`);
        // With one key for all, the abuser takes what is the others'.
        for (const id of ["token-bucket", "sliding-log", "fixed-window"]) {
            const [each, shared] = [await trial({ shape: "abuser" }, id), await trial({ shape: "abuser", shared: true }, id)];
            assert.equal(each.figures.normal.admitted, each.figures.normal.offered, id);
            assert.ok(shared.figures.normal.admitted < 0.8 * each.figures.normal.admitted, id);
        }
        // And the page says so.
        assert.match(await words(tab, "fixed-window-aligned"), /at most 200 within any 10 s, 2.0 times the limit/);
        assert.match(await words(tab, "sliding-log"), /at most 100 within any 10 s\./);
        const marked = await tab.locator("#overview tr", { hasText: "▲" }).locator("th").allInnerTexts();
        assert.deepEqual(marked, ["FIXEDWINDOW ALIGNED"]);
    }));

test("with a key each and with one for all, the page tells what normal users get", () =>
    visit({ view: "shape=abuser" }, async (tab) => {
        const [given, shared] = [{ shape: "abuser" }, { shape: "abuser", shared: true }];
        const [each, one] = await tab.evaluate((all) => Promise.all(all.map(async (given) => (await window.ratelimit.trials(given)).trials)), [given, shared]);
        for (const trial of each) assert.ok((await words(tab, trial.id)).includes(told(trial, { whose: " of one user" })));
        const normal = async () => (await tab.locator("#overview tbody td:nth-child(6)").allInnerTexts()).map(Number.parseFloat);
        const percent = ({ figures: { normal } }) => Math.round((normal.admitted / normal.offered) * 100);
        assert.deepEqual(await normal(), each.map(percent));
        await tab.getByLabel("One for all").check();
        await shown(tab, [one[0].id, told(one[0])]);
        assert.deepEqual(await normal(), one.map(percent));
        assert.equal(await fragment(tab), "#shape=abuser&shared=true");
    }));

test("by keyboard alone a shape and a number are changed; the view is in the address, and the way back leads there", () =>
    visit({}, async (tab) => {
        const trial = (given) => tab.evaluate(async (given) => (await window.ratelimit.trials(given)).trials[0], given);
        const reach = async (id) => {
            for (let stops = 0; stops < 60; stops += 1) {
                await tab.keyboard.press("Tab");
                if (await tab.evaluate((id) => [document.activeElement.id, document.activeElement.name].includes(id), id)) return;
            }
            assert.fail(`Tab does not reach ${id}`);
        };
        const drawn = await charts(tab);
        await reach("shape");
        await tab.keyboard.press("ArrowDown");
        const bursts = await trial({ shape: "bursts" });
        await shown(tab, [bursts.id, told(bursts)]);
        assert.equal(await fragment(tab), "#shape=bursts");
        await reach("limit");
        await tab.keyboard.press("ControlOrMeta+A");
        await tab.keyboard.type("50");
        const fifty = await trial({ shape: "bursts", limit: 50 });
        await shown(tab, [fifty.id, told(fifty)]);
        assert.equal(await fragment(tab), "#shape=bursts&limit=50");
        await tab.keyboard.press("Tab");
        await tab.keyboard.press("ArrowRight");
        await tab.keyboard.press("ArrowRight");
        const more = await trial({ shape: "bursts", limit: 52 });
        await shown(tab, [more.id, told(more)]);
        assert.equal(await tab.locator("#limit").inputValue(), "52");
        const now = await charts(tab);
        now.forEach((chart, i) => assert.notEqual(chart, drawn[i], `chart ${i} is the old one`));

        await tab.reload();
        await computed(tab);
        await shown(tab, [more.id, told(more)]);
        assert.equal(await tab.locator("#limit").inputValue(), "52");
        assert.ok(await tab.getByLabel("Bursts").isChecked());
        assert.match(await tab.locator("#said").innerText(), /Bursts, 15 a second on average. Allowed: 52 per 10/);
        // All that was done to one number is one step back.
        await tab.goBack();
        await shown(tab, [bursts.id, told(bursts)]);
        assert.equal(await tab.locator("#limit").inputValue(), "100");
        await tab.goBack();
        await shown(tab, ["token-bucket", told(await trial({}))]);
        assert.ok(await tab.getByLabel("Steady").isChecked());
    }));

test("what is nonsense in the address is passed over, and what is too much is brought back", () =>
    visit({ view: "shape=zigzag&limit=abc&rate=-5&burst=1e9&workers=&period=7000&shared=perhaps&family=,x&card=none&%E0%A4%A=%" }, async (tab) => {
        const values = await tab.$$eval("[type=number]", (all) => Object.fromEntries(all.map(({ name, value }) => [name, value])));
        assert.deepEqual(values, { rate: "1", limit: "100", burst: "600", workers: "10", service: "500" });
        assert.ok(await tab.getByLabel("Steady").isChecked());
        assert.ok(await tab.getByRole("radio", { name: "10 s" }).isChecked());
        assert.equal(await tab.locator(".card:visible").count(), STRATEGIES);
        await tab.getByRole("button", { name: "Reset" }).click();
        await tab.waitForFunction(() => location.hash === "#shape=steady");
        assert.equal(await tab.locator("#rate").inputValue(), "15");
    }));

test("a number that cannot be is not taken, and leaving the field brings the old one back", () =>
    visit({}, async (tab) => {
        await tab.locator("#limit").fill("6000");
        await tab.waitForTimeout(300);
        assert.equal(await fragment(tab), "");
        await tab.locator("#limit").blur();
        assert.equal(await tab.locator("#limit").inputValue(), "100");
        await tab.locator("#limit").press("Enter");
        assert.equal(await tab.locator("#limit").inputValue(), "100");
    }));

test("families can be left out, and the table sorted", () =>
    visit({ view: "shape=edge" }, async (tab) => {
        for (const family of ["Buckets", "Spacing", "Backend"]) await tab.getByRole("checkbox", { name: family }).uncheck();
        await tab.waitForFunction(() => location.hash === "#shape=edge&family=Windows");
        assert.equal(await tab.locator(".card:visible").count(), 7);
        const names = () => tab.locator("#overview tbody th[scope=row]").allInnerTexts();
        const column = tab.getByRole("columnheader", { name: /Most in any/ });
        await column.getByRole("button").click();
        assert.equal(await column.getAttribute("aria-sort"), "descending");
        assert.equal((await names())[0], "FIXEDWINDOW ALIGNED");
        await column.getByRole("button").click();
        assert.equal(await column.getAttribute("aria-sort"), "ascending");
        assert.equal((await names())[0], "SLIDINGLOG GAP");
        // Without any family there would be nothing to see.
        await tab.getByRole("checkbox", { name: "Windows" }).click();
        await tab.waitForFunction(() => location.hash === "#shape=edge");
        assert.equal(await tab.locator(".card:visible").count(), STRATEGIES);
    }));

test("a row leads to its card, again and again", () =>
    visit({ view: "shape=edge" }, async (tab) => {
        const link = tab.locator("#overview").getByRole("link", { name: "SMOOTH WARMUP" });
        for (let times = 0; times < 2; times += 1) {
            await link.press("Enter");
            await tab.waitForFunction(() => document.activeElement.textContent === "SMOOTH WARMUP" && document.activeElement.localName === "h3");
            await assertInSight(card(tab, "smooth-warmup").locator("h3"));
            await tab.evaluate(() => window.scrollTo(0, 0));
        }
        assert.equal(await fragment(tab), "#shape=edge&card=smooth-warmup");
        await tab.reload();
        await computed(tab);
        await assertInSight(card(tab, "smooth-warmup").locator("h3"));
    }));

async function assertInSight(locator) {
    const { y } = await locator.boundingBox();
    assert.ok(y >= 0 && y < 300, `it stands at ${y}`);
}

test("the data of a chart is there as a table, too", () =>
    visit({ view: "shape=slow" }, async (tab) => {
        const { trials } = await tab.evaluate(() => window.ratelimit.trials({ shape: "slow" }));
        const { series, id } = trials.find(({ id }) => id === "gcra");
        await card(tab, id).locator("summary").press("Enter");
        const column = async (i) => (await card(tab, id).locator(`details td:nth-child(${i})`).allTextContents()).map(Number);
        const sum = (numbers) => numbers.reduce((a, b) => a + b);
        await card(tab, id).locator("details td").first().waitFor();
        assert.equal((await column(2)).length, 20);
        assert.equal(sum(await column(2)), sum(series.offered));
        assert.equal(sum(await column(3)), sum(series.through));
        assert.equal(Math.max(...(await column(5))), Math.max(...series.within));
        assert.equal(Math.max(...(await column(6))), Math.max(...series.atWork));
    }));

test("the button puts the command on the clipboard and says so; where there is no clipboard, too", async () => {
    const copy = async (tab) => {
        await tab.context().grantPermissions(["clipboard-read", "clipboard-write"]);
        await card(tab, "gcra-reserve").getByRole("button", { name: "Copy the command of GCRA RESERVE" }).click();
        await tab.waitForFunction(() => document.getElementById("said").textContent.startsWith("Copied: RL.GCRA"));
        assert.equal(await card(tab, "gcra-reserve").getByRole("button").textContent(), "Copied the command of GCRA RESERVE");
    };
    await visit({}, async (tab) => {
        await copy(tab);
        assert.equal(await tab.evaluate(() => navigator.clipboard.readText()), "RL.GCRA user:1 49 100 10000 RESERVE MAXWAIT 1000");
    });
    const without = () => Object.defineProperty(navigator, "clipboard", { value: undefined });
    await visit({ first: without }, async (tab) => {
        await copy(tab);
        assert.equal(await tab.evaluate(() => String(getSelection())), "RL.GCRA user:1 49 100 10000 RESERVE MAXWAIT 1000");
    });
});

test("a worker computes; without one the page does it itself, with the same outcome", async () => {
    let with_, without;
    await visit({}, async (tab) => {
        assert.equal(tab.workers().length, 1);
        with_ = await charts(tab);
    });
    await visit({ first: () => { delete window.Worker; } }, async (tab) => {
        assert.equal(tab.workers().length, 0);
        without = await charts(tab);
    });
    assert.deepEqual(without, with_);
});

test("an answer to an older question never replaces a newer one", () =>
    visit({}, async (tab) => {
        await tab.getByLabel("Rising").check();
        await tab.waitForSelector('#results[aria-busy="true"]');
        await tab.getByLabel("Stampede").check();
        await tab.evaluate(() => {
            window.seen = [];
            new MutationObserver(() => window.seen.push(document.querySelector(".words").textContent)).observe(document.querySelector(".words"), { childList: true, subtree: true, characterData: true });
        });
        await shown(tab, ["token-bucket", "of 885"]);
        await computed(tab);
        await tab.waitForTimeout(1500);
        const seen = await tab.evaluate(() => window.seen);
        assert.ok(seen.length && seen.every((words) => !words.includes("9,679")), `${seen}`);
        assert.match(await words(tab, "token-bucket"), /of 885/);
    }));

test("a refused trial shows its error in its card, and the others stay", () => {
    const refuse = () => {
        const parse = JSON.parse;
        JSON.parse = (text) => {
            const told = parse(text);
            for (const trial of told?.trials ?? []) if (trial.id === "gcra") Object.assign(trial, { error: "ERR no such limit", figures: undefined, series: undefined, svg: undefined });
            return told;
        };
        delete window.Worker;
    };
    return visit({ first: refuse }, async (tab) => {
        assert.match(await card(tab, "gcra").innerText(), /Not with these numbers: ERR no such limit/);
        assert.equal(await card(tab, "gcra").locator("details").isVisible(), false);
        assert.equal(await tab.locator(".fault:visible").count(), 1);
        for (const column of (await tab.getByRole("columnheader").all()).slice(0, 5)) await column.getByRole("button").click();
        const row = tab.locator("#overview tr", { has: tab.getByRole("link", { name: "GCRA", exact: true }) });
        assert.deepEqual(await row.locator("td").first().innerText(), "–");
        assert.equal(await tab.locator(".picture svg").count(), STRATEGIES - 1);
    });
});

test("a browser that cannot run it is told", () =>
    visit({ first: () => { delete window.DecompressionStream; } }, async (tab) => {
        assert.match(await tab.getByRole("alert").innerText(), /This browser cannot run the page/);
    }));

test("charts are drawn as wide as their cards, also after the window changed", () =>
    visit({ from: "a server" }, async (tab) => {
        for (const width of [1280, 700, 1600]) {
            await tab.setViewportSize({ width, height: 900 });
            await tab.waitForFunction(() => {
                const picture = document.querySelector(".picture");
                return Math.abs(picture.firstChild?.viewBox.baseVal.width - picture.clientWidth) <= 4;
            });
        }
    }));

test("in a frame it tells how high it is and is as dark as it is told to be", async () => {
    const tab = await open(browser);
    const host = `<!doctype html><title>host</title><iframe style="width: 900px; height: 300px" src="compare.html"></iframe>
        <script>heights = []; onmessage = ({ data }) => data.ratelimit === "height" && heights.push(data.pixels);</script>`;
    await tab.route("**/host.html", (route) => route.fulfill({ contentType: "text/html", body: host }));
    await tab.goto(`${server.origin}/host.html`);
    const frame = tab.frames()[1];
    await computed(frame);
    await tab.waitForFunction(() => window.heights.at(-1) > 2000);
    const high = () => frame.evaluate(() => Math.ceil(document.documentElement.getBoundingClientRect().height));
    assert.equal(await tab.evaluate(() => window.heights.at(-1)), await high());
    await frame.getByLabel("Buckets").check();
    await frame.getByLabel("Windows").uncheck();
    await tab.waitForFunction(() => window.heights.at(-1) < window.heights.at(-2));
    for (const [dark, color] of [[true, "rgb(228, 231, 234)"], [false, "rgb(26, 29, 33)"]]) {
        await tab.evaluate((dark) => document.querySelector("iframe").contentWindow.postMessage({ ratelimit: "theme", dark }, "*"), dark);
        await frame.waitForFunction((color) => getComputedStyle(document.body).color === color, color);
    }
    assert.equal(await frame.locator(".foot a").first().getAttribute("target"), "_top");
    assert.deepEqual(tab.faults, []);
    await tab.context().close();
});

describe("everybody can use it", () => {
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
});

describe("what the page computes is what a server with the module replies", () => {
    const SETTINGS = [
        {},
        { shape: "edge", period: 5000 },
        { shape: "abuser", shared: true },
        { shape: "slow" },
        { shape: "rising", rate: 7, limit: 33, period: 30_000, burst: 12, workers: 3, service: 900 },
        { shape: "bursts", rate: 60, limit: 600, period: 1000, burst: 600, workers: 100, service: 10 },
    ];
    // The shedder throws dice: its chance is compared, and the outcome where it is certain.
    const agrees = (line, ours, theirs) => {
        if (!line.startsWith("RL.SHED ")) return JSON.stringify(ours) === JSON.stringify(line.startsWith("RL.MULTI ") ? theirs[0] : theirs);
        const [[limited, chance], [server, said]] = [ours, theirs];
        return Math.abs(chance - Number(said)) <= 1e-12 && (![0, 1].includes(chance) || limited === server);
    };

    for (const settings of SETTINGS) {
        test(`call by call, ${JSON.stringify(settings)}`, () =>
            visit({}, async (tab) => {
                const { trials } = await tab.evaluate((given) => window.ratelimit.trials(given), settings);
                for (const { id, figures } of trials) {
                    const history = await tab.evaluate((given) => window.ratelimit.history(given), { ...settings, strategy: id });
                    const asked = history.filter(([line]) => !line.startsWith("RL.RELEASE "));
                    assert.equal(asked.length, figures.all.offered, id);
                    assert.equal(asked.filter(([, [limited]]) => limited === 0).length, figures.all.admitted, id);
                    await redis.call(["FLUSHALL"]);
                    const replies = await redis.call(history.map(([line]) => line));
                    const off = history.findIndex(([line, ours], i) => replies[i] instanceof Error || !agrees(line, ours, replies[i]));
                    assert.equal(off, -1, `${id}, call ${off}: ${JSON.stringify(history[off])}, but the server says ${replies[off]}`);
                }
            }));
    }

    test("every command on the page is one that the server takes", () =>
        visit({}, async (tab) => {
            const commands = await tab.$$eval(".command code", (all) => all.map((code) => code.textContent));
            assert.equal(new Set(commands).size, STRATEGIES);
            for (const command of commands) {
                const [, reply] = await redis.call(["FLUSHALL", command]);
                assert.equal([reply].flat(2)[0], 0, `${command}: ${reply}`);
            }
        }));
});

for (const size of SIZES) {
    for (const theme of THEMES) {
        test(`screenshots, ${size}, ${theme}`, () =>
            visit({ view: "shape=edge", size, theme }, async (tab) => {
                const path = (name) => join(root, `target/screenshots/${name}-${size}-${theme}.png`);
                await tab.screenshot({ path: path("compare") });
                await tab.screenshot({ path: path("compare-all"), fullPage: true });
            }));
    }
}
