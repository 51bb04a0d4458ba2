// "Try it" under the examples of the pages.
import assert from "node:assert/strict";
import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { after, before, test } from "node:test";

import { launch, open, serve, shoot, site, violations } from "./browser.mjs";

let browser, server;

before(async () => {
    browser = await launch();
    server = await serve(site);
});

after(async () => {
    await browser?.close();
    server?.stop();
});

const begin = (tab) => tab.getByRole("button", { name: "Try it" }).first().click();
const send = (tab) => tab.getByRole("button", { name: "Send" }).click();
const replies = (tab) => tab.locator(".try li");

/** Until so many replies are shown; the last one. */
async function last(tab, count) {
    await tab.waitForFunction((count) => document.querySelectorAll(".try li").length === count, count);
    return replies(tab).last().innerText();
}

const move = (tab, seconds) =>
    tab.locator(".try [type=range]").evaluate((slider, at) => {
        slider.value = at;
        slider.dispatchEvent(new Event("input", { bubbles: true }));
    }, seconds);

for (const from of ["a server", "files"]) {
    test(`an example is opened and changed, and time passes, from ${from}`, async () => {
        const tab = await open(browser);
        await tab.goto(`${from === "files" ? pathToFileURL(site).href : server.origin}/docs/commands/rl.gcra.html`);
        assert.equal(await tab.evaluate(() => window.ratelimitEngine), undefined);
        await begin(tab);
        const input = tab.locator(".try input").first();
        assert.match(await last(tab, 2), /^0 s RL\.GCRA user:1 15 30 1m COST 16 → refused, 15 of 16 left, retry in 2 s, reset in 2 s$/);
        assert.equal(await input.inputValue(), "RL.GCRA user:1 15 30 1m COST 16");
        await move(tab, 2);
        await send(tab);
        assert.match(await last(tab, 3), /^2 s .* → admitted, 0 of 16 left, reset in 32 s$/);
        // Back to the first second: what came later has not happened.
        await move(tab, 0);
        await input.fill("RL.GCRA user:1 15 30 1m COST 15");
        await send(tab);
        assert.match(await last(tab, 3), /^0 s .* → admitted, 0 of 16 left, reset in 32 s$/);
        await input.fill("RL.GCRA user:1 15 30");
        await send(tab);
        assert.match(await last(tab, 4), /→ \(error\) ERR period is missing: RL\.GCRA key max_burst count period \[options\]$/);
        await input.fill("  ");
        await send(tab);
        await input.fill("RL.XADD jobs 10 * url 1");
        await send(tab);
        assert.match(await last(tab, 5), /→ RL\.XADD needs a server/);
        // What came of each is told apart.
        const kinds = await replies(tab).evaluateAll((all) => all.map((one) => [one.className, getComputedStyle(one.lastElementChild).color]));
        assert.deepEqual(kinds.map(([kind]) => kind), ["", "no", "", "wrong", "elsewhere"]);
        assert.equal(new Set(kinds.map(([, colour]) => colour)).size, 4);
        await tab.getByRole("button", { name: "Start again" }).click();
        await tab.waitForFunction(() => !document.querySelector(".try li"));
        await tab.locator(".try label", { hasText: "Time" }).waitFor();
        await input.fill("RL.PEEK user:1 GCRA 15 30 1m");
        await send(tab);
        assert.match(await last(tab, 1), /→ admitted, 16 of 16 left, reset in 0 s$/);
        assert.deepEqual(tab.faults, []);
        await tab.context().close();
    });
}

test("where the engine does not run, the reader is told so, and nothing is still loading", async () => {
    const tab = await open(browser);
    await tab.addInitScript(() => { delete window.DecompressionStream; });
    await tab.goto(`${server.origin}/docs/commands/rl.gcra.html`);
    await begin(tab);
    assert.match(await last(tab, 1), /^This browser cannot run it: /);
    assert.equal(await tab.locator(".try output").innerText(), "");
    await tab.context().close();
});

test("time is that of the example, and goes as far as its longest limit", async () => {
    const tab = await open(browser);
    await tab.goto(`${server.origin}/docs/commands/rl.penalty.html`);
    await begin(tab);
    assert.match(await last(tab, 5), /^11 min .* → refused, 0 of 3 left, retry in 20 min, reset in 2 d 20 min$/);
    const slider = tab.getByRole("slider", { name: "Time" });
    assert.ok((await slider.evaluate(({ max }) => Number(max))) > 2 * 86_400);
    // Two days and 31 minutes after the first strikes all is forgiven.
    await move(tab, 3 * 86_400);
    await tab.locator(".try input").first().fill("RL.PENALTY ip:1 3 10m 10m GROW 2 MAX 1d COST 0");
    await send(tab);
    assert.match(await last(tab, 6), /→ admitted, 3 of 3 left, reset in 0 s$/);
    await tab.context().close();
});

test("a caller waits until the slider has passed", async () => {
    const tab = await open(browser);
    await tab.goto(`${server.origin}/docs/commands/rl.gcra.html`);
    await begin(tab);
    await last(tab, 2);
    const type = async (line, count) => {
        await tab.locator(".try input").first().fill(line);
        await send(tab);
        return last(tab, count);
    };
    await type("RL.CONCURRENT door 1 1m ann", 3);
    assert.match(await type("RL.CONCURRENT door 1 1m bob BLOCK 10s", 4), /→ waits$/);
    const bob = (text) => tab.locator(".try li", { hasText: "bob" }).filter({ hasText: text }).waitFor();
    await move(tab, 12);
    await bob("after 10 s: refused, 0 of 1 left, retry in 50 s");
    await move(tab, 2);
    await bob("→ waits");
    await type("RL.RELEASE door ann", 5);
    await bob("after 2 s: admitted, 0 of 1 left");
    // As redis-cli prints it.
    assert.match(await type("RL.INFO door", 6), /\n *2\) "CONCURRENT"\n/);
    assert.deepEqual(tab.faults, []);
    await tab.context().close();
});

test("a reader can ask why, by policy, and what a key holds", async () => {
    const tab = await open(browser);
    await tab.goto(`${server.origin}/docs/commands/rl.gcra.html`);
    await begin(tab);
    let sent = 2;
    for (const [line, says] of [
        ["RL.EXPLAIN RL.GCRA user:1 15 30 1m COST 16", /refused by limit 1; try again in 2 s/],
        ["RL.INFO user:1", /"GCRA"/],
        ["DEL user:1", /→ \(integer\) 1$/],
        ["RL.POLICY SET api LIMIT GCRA 1 30 1m", /→ \(integer\) 1$/],
        ["RL.ASK user:7 api", /→ admitted, 1 of 2 left, reset in 2 s, by limit 1$/],
    ]) {
        await last(tab, sent);
        await tab.locator(".try input").first().fill(line);
        await send(tab);
        assert.match(await last(tab, (sent += 1)), says);
    }
    await tab.context().close();
});

test("an example goes on where the examples above it ended", async () => {
    const tab = await open(browser);
    await tab.goto(`${server.origin}/docs/shedding.html`);
    await tab.getByRole("button", { name: "Try it" }).nth(1).click();
    await last(tab, 3);
    assert.match(await replies(tab).first().innerText(), /^0 s RL\.SHED fleet 1 → (not )?shed, by a chance of 0\.500$/);
    await tab.context().close();
});

test("each example that can be tried opens with its replies", async () => {
    const tab = await open(browser);
    let tried = 0;
    for (const name of (await readdir(site, { recursive: true })).filter((name) => name.endsWith(".html"))) {
        if (!(await readFile(join(site, name), "utf8")).includes("language-redis-cli tryable")) continue;
        await tab.goto(`${server.origin}/${name}`);
        const sessions = await tab.locator("pre:has(+ .try-it)").allInnerTexts();
        for (const session of sessions) {
            await begin(tab);
            const panel = tab.locator(".try").last();
            await panel.locator("li").first().waitFor();
            const commands = session.match(/^127\.0\.0\.1:6379> /gm).length;
            const errors = (session.match(/^\(error\) /gm) ?? []).length;
            assert.equal(await panel.locator("li").count(), commands, `${name}: ${session}`);
            assert.equal(await panel.locator("li.wrong").count(), errors, `${name}: ${session}`);
            const times = await panel.locator("li b").allInnerTexts();
            assert.ok(times.includes("0 s"), `${name}: ${times}`);
            assert.ok(times.every((time) => /^(\d[\d.]* (d|h|min|s|ms) ?)+$/.test(time)), `${name}: ${times}`);
            // The next call is made when the last one was, and no call before it is lost.
            assert.equal(await panel.locator("output").innerText(), times.at(-1), `${name}: ${session}`);
            await panel.getByRole("button", { name: "Send" }).click();
            await panel.locator("li").nth(commands).waitFor();
            assert.deepEqual(await panel.locator("li b").allInnerTexts(), [...times, times.at(-1)], `${name}: ${session}`);
            await panel.evaluate((done) => done.remove());
            tried += 1;
        }
    }
    assert.ok(tried > 100, `only ${tried}`);
    assert.deepEqual(tab.faults, []);
    await tab.context().close();
});

for (const theme of ["light", "dark"]) {
    test(`axe finds nothing serious in what is tried, ${theme}`, async () => {
        const tab = await open(browser, theme === "light" ? "desktop" : "phone", theme);
        await tab.goto(`${server.origin}/docs/commands/rl.gcra.html`);
        await begin(tab);
        await last(tab, 2);
        assert.deepEqual(await violations(tab), []);
        assert.ok((await tab.evaluate(() => document.scrollingElement.scrollWidth - innerWidth)) <= 0);
        await tab.context().close();
    });
}

test("screenshots of what is tried", () =>
    shoot(browser, "try", async (tab) => {
        await tab.goto(`${server.origin}/docs/commands/rl.gcra.html`);
        await begin(tab);
        await last(tab, 2);
        await move(tab, 2);
        await send(tab);
        await last(tab, 3);
        await tab.locator(".try").scrollIntoViewIfNeeded();
    }));
