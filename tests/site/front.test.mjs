// The site's front page, and the ways from and to it.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { launch, open, root, serve, site } from "./browser.mjs";

let browser, server;

before(async () => {
    browser = await launch();
    server = await serve(site);
});

after(async () => {
    await browser?.close();
    server?.stop();
});

test("the front page says what it is, shows the player, and then how to install it and where to go on", async () => {
    for (const size of ["desktop", "phone"]) {
        const tab = await open(browser, size);
        await tab.goto(`${server.origin}/index.html`);
        const main = tab.locator("main");
        assert.match(await main.locator("h1").innerText(), /Rate limiting as native Redis commands/);
        assert.ok((await main.locator("img").first().evaluate((logo) => logo.complete && logo.naturalWidth > 0)), "no logo");
        assert.match(await main.locator("p").nth(1).innerText(), /module for Redis and Valkey/);
        const headings = (await main.locator("h2").allInnerTexts()).map((text) => text.trim());
        assert.deepEqual(headings, ["Install", "Go on"]);
        const install = await main.locator("table").first().innerText();
        for (const way of ["make run", "make release", "make image", "make packages"]) assert.ok(install.includes(way), way);
        const { y } = await main.locator("#compare").boundingBox();
        assert.ok(y < 420, `the player begins at ${y}`);
        await tab.context().close();
    }
});

test("every page names the version", async () => {
    const [, version] = (await readFile(join(root, "Cargo.toml"), "utf8")).match(/^version = "(.+)"/m);
    const tab = await open(browser);
    for (const page of ["index", "docs/commands/rl.gcra"]) {
        await tab.goto(`${server.origin}/${page}.html`);
        assert.equal(await tab.locator(".menu-title").innerText(), `ratelimit ${version}`);
    }
    await tab.context().close();
});

test("the page alone in the site leads to the installation and the documentation", async () => {
    const tab = await open(browser);
    for (const [name, path] of [["Install", "/index.html#install"], ["Documentation", "/docs/README.html"]]) {
        await tab.goto(`${server.origin}/compare.html`);
        await tab.getByRole("navigation").getByRole("link", { name }).click();
        await tab.waitForURL(`${server.origin}${path}`);
    }
    assert.deepEqual(tab.faults, []);
    await tab.context().close();
});

test("without JavaScript the front page says where to look instead", async () => {
    const context = await browser.newContext({ javaScriptEnabled: false });
    const tab = await context.newPage();
    await tab.goto(`${server.origin}/index.html`);
    assert.equal(await tab.locator("#compare").isVisible(), false);
    await tab.locator("main noscript a").click();
    await tab.waitForURL(`${server.origin}/docs/shapes.html`);
    await context.close();
});
