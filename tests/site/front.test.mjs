// The site's front page, and the ways from and to it.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { launch, open, serve, site } from "./browser.mjs";

let browser, server;

before(async () => {
    browser = await launch();
    server = await serve(site);
});

after(async () => {
    await browser?.close();
    server?.stop();
});

test("the front page says what it is and how to install it before anything else, and then where to go on", async () => {
    for (const size of ["desktop", "phone"]) {
        const tab = await open(browser, size);
        await tab.goto(`${server.origin}/index.html`);
        const main = tab.locator("main");
        assert.match(await main.locator("h1").innerText(), /Rate limiting as native Redis commands/);
        assert.match(await main.locator("p").first().innerText(), /module for Redis and Valkey/);
        const headings = (await main.locator("h2").allInnerTexts()).map((text) => text.trim());
        assert.deepEqual(headings, ["Install", "See what each limit lets through", "Go on"]);
        const install = await main.locator("table").first().innerText();
        for (const way of ["make run", "make release", "make image", "make packages"]) assert.ok(install.includes(way), way);
        const { y } = await main.locator("h2").first().boundingBox();
        assert.ok(y < 900, `how to install it begins at ${y}`);
        await tab.context().close();
    }
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
