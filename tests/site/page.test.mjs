// What the comparing page does: its table, its cards, its worker, its frame.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { test } from "node:test";

import { open, until } from "./browser.mjs";
import { browser, card, charts, computed, count, fragment, ORIGINS, server, told, trials, visit, words } from "./page.mjs";

test("the table is not sorted by a column that nobody sees", () =>
    visit({ view: "shape=abuser&all=true" }, async (tab) => {
        const families = tab.locator("#overview th[scope=rowgroup]");
        const sort = async (name) => {
            await tab.getByRole("columnheader", { name }).getByRole("button").click();
            assert.equal(await families.count(), 0);
        };
        await sort("Normal users");
        await tab.getByLabel("Steady").check();
        await families.nth(3).waitFor();
        assert.equal(await tab.locator("#overview [aria-sort]").count(), 0);
        await tab.getByLabel("An abuser").check();
        await tab.waitForSelector(":root[data-shape=abuser]");
        await sort(/Most at work/);
        await tab.setViewportSize({ width: 600, height: 900 });
        await families.nth(3).waitFor();
    }));

// Runs in the page before all else: lets the test keep the questions for trials back from the worker.
function keepable() {
    const post = Worker.prototype.postMessage;
    Worker.prototype.postMessage = function keep(...said) {
        const go = () => post.apply(this, said);
        if (window.kept && said[0][0] === "trials") window.kept.push(go);
        else go();
    };
}
const keep = (tab) => tab.evaluate(() => { window.kept = []; });
const letGo = (tab) => tab.evaluate(() => {
    const all = window.kept;
    window.kept = null;
    for (const go of all) go();
});

test("while an answer is awaited, what is shown stays what was asked", () =>
    visit({ view: "shape=edge", first: keepable }, async (tab) => {
        const before = await words(tab, "fixed-window-aligned");
        const twice = tab.locator("#overview tr", { hasText: "FIXEDWINDOW ALIGNED" }).locator(".times");
        await keep(tab);
        await tab.locator("#limit").fill("50");
        await tab.waitForSelector('#results[aria-busy="true"]');
        await tab.getByRole("columnheader", { name: /Most in any/ }).getByRole("button").click();
        assert.equal(await twice.innerText(), "▲ 2.0×");
        assert.equal(await words(tab, "fixed-window-aligned"), before);
        assert.match(await tab.locator("#said").innerText(), /Allowed: 100 per/);
        assert.equal(await tab.locator("#results").getAttribute("aria-busy"), "true");
        await letGo(tab);
        await computed(tab);
        assert.match(await tab.locator("#said").innerText(), /Allowed: 50 per/);
        assert.notEqual(await words(tab, "fixed-window-aligned"), before);
    }));

test("a row leads to its card, again and again", () =>
    visit({ view: "shape=edge&all=true" }, async (tab) => {
        const link = tab.locator("#overview").getByRole("link", { name: "SMOOTH WARMUP" });
        for (let times = 0; times < 2; times += 1) {
            await link.press("Enter");
            await tab.waitForFunction(() => document.activeElement.textContent === "SMOOTH WARMUP" && document.activeElement.localName === "h3");
            await assertInSight(card(tab, "smooth-warmup").locator("h3"));
            await tab.evaluate(() => window.scrollTo(0, 0));
        }
        assert.equal(await fragment(tab), "#shape=edge&all=true&card=smooth-warmup");
        await tab.reload();
        await computed(tab);
        await assertInSight(card(tab, "smooth-warmup").locator("h3"));
    }));

async function assertInSight(locator) {
    const { y } = await locator.boundingBox();
    assert.ok(y >= 0 && y < 300, `it stands at ${y}`);
}

test("the button puts the command on the clipboard and says so; where there is no clipboard, too", async () => {
    const copy = async (tab) => {
        await tab.context().grantPermissions(["clipboard-read", "clipboard-write"]);
        await card(tab, "gcra-reserve").getByRole("button", { name: "Copy the command of GCRA RESERVE" }).click();
        // For two seconds the button says so as well.
        await tab.waitForFunction(() =>
            document.getElementById("copied").textContent.startsWith("Copied: RL.GCRA")
            && document.querySelector("[data-strategy=gcra-reserve] .command button").textContent === "Copied the command of GCRA RESERVE");
    };
    await visit({ view: "all=true" }, async (tab) => {
        await copy(tab);
        assert.equal(await tab.evaluate(() => navigator.clipboard.readText()), "RL.GCRA user:1 49 100 10s RESERVE MAXWAIT 1s");
    });
    const without = () => { Object.defineProperty(navigator, "clipboard", { value: undefined }); };
    await visit({ first: without, view: "all=true" }, async (tab) => {
        await copy(tab);
        assert.equal(await tab.evaluate(() => String(getSelection())), "RL.GCRA user:1 49 100 10s RESERVE MAXWAIT 1s");
    });
});

test("where nothing can be copied the command is selected, and nobody is told that it is copied", () => {
    const without = () => {
        Object.defineProperty(navigator, "clipboard", { value: undefined });
        document.execCommand = () => false;
    };
    return visit({ first: without, view: "all=true" }, async (tab) => {
        const said = await tab.locator("#said").innerText();
        await card(tab, "uniform").locator(".command button").click();
        await card(tab, "uniform").getByRole("button", { name: "Press Ctrl+C" }).waitFor();
        assert.match(await tab.locator("#copied").textContent(), /^Not copied/);
        assert.equal(await tab.evaluate(() => String(getSelection())), "RL.UNIFORM user:1 100ms");
        assert.equal(await tab.locator("#said").innerText(), said);
    });
});

test("workers compute, one of them only replays; without one the page does it itself, with the same outcome", async () => {
    let with_, without;
    await visit({}, async (tab) => {
        assert.equal(tab.workers().length, 2);
        with_ = await charts(tab);
    });
    await visit({ first: () => { delete window.Worker; } }, async (tab) => {
        assert.equal(tab.workers().length, 0);
        without = await charts(tab);
    });
    assert.deepEqual(without, with_);
});

test("an answer to an older question never replaces a newer one", () =>
    visit({ first: keepable }, async (tab) => {
        await tab.evaluate(() => {
            window.seen = [];
            new MutationObserver(() => window.seen.push(document.querySelector(".words").textContent)).observe(document.querySelector(".words"), { childList: true, subtree: true, characterData: true });
        });
        await keep(tab);
        await tab.getByLabel("Rising").check();
        await tab.waitForFunction(() => window.kept.length === 1);
        await tab.getByLabel("Bursts").check();
        // The page asks for trials in a task after the stage is drawn.
        await tab.waitForSelector('#stage[aria-busy="false"]');
        await tab.evaluate(() => new Promise((after) => setTimeout(after)));
        await letGo(tab);
        await computed(tab);
        await tab.waitForTimeout(1500);
        const seen = await tab.evaluate(() => window.seen);
        const [rising] = await trials(tab, { shape: "rising" });
        const [bursts] = await trials(tab, { shape: "bursts" });
        assert.ok(seen.length && seen.every((words) => !words.includes(`of ${count(rising.figures.all.offered)} requests`)), `${seen}`);
        assert.ok((await words(tab, bursts.id)).includes(told(bursts)));
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
        assert.equal(await tab.locator(".picture svg").count(), (await tab.locator(".card").count()) - 1);
    });
});

test("the first scene plays before the engine has arrived, and is the engine's", async () => {
    const page = await readFile(new URL(ORIGINS["a file"]()), "utf8");
    const half = page.indexOf('<script id="wasm"');
    let rest;
    const slow = createServer((_, response) => {
        response.writeHead(200, { "content-type": "text/html; charset=utf-8" }).write(page.slice(0, half));
        rest = () => response.end(page.slice(half));
    });
    await new Promise((listening) => slow.listen(0, "127.0.0.1", listening));
    const tab = await open(browser);
    await tab.goto(`http://127.0.0.1:${slow.address().port}/compare.html`, { waitUntil: "commit" });
    await tab.locator("#lesson", { hasText: "FIXEDWINDOW ALIGNED lets 200 requests through" }).waitFor();
    assert.equal(await tab.locator("#stage").getAttribute("aria-busy"), "false");
    assert.match(await tab.locator(".past").first().getAttribute("aria-label"), /200 through in the last 10/);
    const first = await tab.locator("#first").evaluate(({ textContent }) => JSON.parse(textContent).replay);
    // What is asked meanwhile is answered then.
    await tab.getByLabel("The stampede").check();
    await tab.waitForSelector('#stage[aria-busy="true"]');
    rest();
    await computed(tab);
    assert.match(await tab.locator("#lesson").innerText(), /lets 77 requests of all users through/);
    assert.deepEqual(await tab.evaluate((given) => window.ratelimit.replay(given), { shape: "edge", strategies: ["fixed-window-aligned", "sliding-log"] }), first);
    assert.deepEqual(tab.faults, []);
    await tab.context().close();
    slow.close();
});

test("a browser that cannot run it is told", () =>
    visit({ first: () => { delete window.DecompressionStream; } }, async (tab) => {
        assert.match(await tab.getByRole("alert").innerText(), /This browser cannot run the page/);
        // The first scene needs no engine; whatever else is asked of the stage does.
        await tab.locator("#send").click();
        await tab.waitForSelector("#stage", { state: "hidden" });
        assert.ok(await tab.getByRole("alert").isVisible());
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
    await until(async () => (await tab.evaluate(() => window.heights.at(-1))) === (await high()), "the host knows the height");
    const few = await tab.evaluate(() => window.heights.at(-1));
    await frame.getByRole("button", { name: /more strategies/ }).click();
    await tab.waitForFunction((few) => window.heights.at(-1) > few + 1000, few);
    await frame.getByRole("button", { name: "Fewer strategies" }).click();
    await tab.waitForFunction((few) => Math.abs(window.heights.at(-1) - few) < 50, few);
    for (const [dark, color] of [[true, "rgb(228, 231, 234)"], [false, "rgb(26, 29, 33)"]]) {
        await tab.evaluate((dark) => document.querySelector("iframe").contentWindow.postMessage({ ratelimit: "theme", dark }, "*"), dark);
        await frame.waitForFunction((color) => getComputedStyle(document.body).color === color, color);
    }
    assert.equal(await frame.locator(".foot a").first().getAttribute("target"), "_top");
    assert.deepEqual(tab.faults, []);
    await tab.context().close();
});
