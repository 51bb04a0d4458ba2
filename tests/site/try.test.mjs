// "Try it" under the examples of the command pages.
import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
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
    test(`a command is changed and sent, and time passes, from ${from}`, async () => {
        const tab = await open(browser);
        await tab.goto(`${from === "files" ? pathToFileURL(site).href : server.origin}/docs/commands/rl.gcra.html`);
        await begin(tab);
        assert.equal(await tab.locator(".try input").first().inputValue(), "RL.GCRA user:1 15 30 1m");
        await tab.locator(".try input").first().fill("RL.GCRA user:1 15 30 1m COST 16");
        await send(tab);
        assert.match(await last(tab, 1), /→ admitted, 0 of 16 left, reset in 32 s$/);
        await tab.locator(".try input").first().fill("RL.GCRA user:1 15 30 1m");
        await send(tab);
        assert.match(await last(tab, 2), /→ refused, retry in 2 s, 0 of 16 left/);
        await move(tab, 2);
        await send(tab);
        assert.match(await last(tab, 3), /^2 s .* → admitted, 0 of 16 left/);
        // Back to the first second: what came later has not happened.
        await move(tab, 0);
        await send(tab);
        assert.match(await last(tab, 3), /^0 s .* → refused, retry in 2 s/);
        await tab.locator(".try input").first().fill("RL.GCRA user:1 15 30");
        await send(tab);
        assert.match(await last(tab, 4), /→ ERR /);
        await tab.getByRole("button", { name: "Start again" }).click();
        await tab.waitForFunction(() => !document.querySelector(".try li"));
        assert.deepEqual(tab.faults, []);
        await tab.context().close();
    });
}

test("each example that can be tried gets a reply", async () => {
    const tab = await open(browser);
    let tried = 0;
    for (const name of (await readdir(join(site, "docs/commands"))).filter((name) => name.endsWith(".html"))) {
        await tab.goto(`${server.origin}/docs/commands/${name}`);
        const buttons = tab.getByRole("button", { name: "Try it" });
        for (let left = await buttons.count(); left > 0; left -= 1) {
            await buttons.first().click();
            const panel = tab.locator(".try").last();
            await panel.getByRole("button", { name: "Send" }).click();
            await panel.locator("li").first().waitFor();
            const said = await panel.locator("li").first().innerText();
            assert.match(said, /→ (admitted|refused|shed|not shed)/, `${name}: ${said}`);
            tried += 1;
        }
    }
    assert.ok(tried >= 15, `only ${tried}`);
    assert.deepEqual(tab.faults, []);
    await tab.context().close();
});

for (const theme of ["light", "dark"]) {
    test(`axe finds nothing serious in what is tried, ${theme}`, async () => {
        const tab = await open(browser, theme === "light" ? "desktop" : "phone", theme);
        await tab.goto(`${server.origin}/docs/commands/rl.gcra.html`);
        await begin(tab);
        await send(tab);
        await last(tab, 1);
        assert.deepEqual(await violations(tab), []);
        assert.ok((await tab.evaluate(() => document.scrollingElement.scrollWidth - innerWidth)) <= 0);
        await tab.context().close();
    });
}

test("screenshots of what is tried", () =>
    shoot(browser, "try", async (tab) => {
        await tab.goto(`${server.origin}/docs/commands/rl.gcra.html`);
        await begin(tab);
        for (let i = 1; i <= 3; i += 1) {
            await send(tab);
            await last(tab, i);
        }
        await tab.locator(".try").scrollIntoViewIfNeeded();
    }));
