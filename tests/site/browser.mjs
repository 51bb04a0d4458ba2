// What the tests of pages share: Chromium, a server for a folder, pictures, and axe.
// SITE is the folder of the built site, ROOT the repository, CHROMIUM the browser.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";

import axe from "axe-core";
import { chromium } from "playwright-core";

export const site = process.env.SITE;
export const root = process.env.ROOT;

/** How many milliseconds a test waits for something. A busy machine takes ten seconds for what a quiet one does in one. */
const PATIENCE = 60_000;
const TYPES = {
    ".css": "text/css",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".wasm": "application/wasm",
    ".woff2": "font/woff2",
};
const SIZES = {
    desktop: { viewport: { width: 1280, height: 900 } },
    phone: { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true },
};

export const launch = () =>
    chromium.launch({
        executablePath: process.env.CHROMIUM,
        args: [
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
        ],
    });

/** A tab of its own, `size` one of desktop and phone, `theme` one of light and dark. `tab.faults` collects what went
 * wrong in it: requests to elsewhere, answers that are errors, errors and warnings on the console, uncaught errors. */
export async function open(browser, size = "desktop", theme = "light") {
    const context = await browser.newContext({ ...SIZES[size], colorScheme: theme, reducedMotion: "reduce" });
    context.setDefaultTimeout(PATIENCE);
    const tab = await context.newPage();
    tab.faults = [];
    const fault = (what) => tab.faults.push(`${tab.url()}: ${what}`);
    tab.on("request", (request) => {
        const { protocol, hostname } = new URL(request.url());
        const local = hostname === "127.0.0.1" || ["file:", "data:", "blob:", "about:"].includes(protocol);
        if (!local) fault(`asks for ${request.url()}`);
    });
    tab.on("response", (response) => {
        if (response.status() >= 400) fault(`${response.status()} for ${response.url()}`);
    });
    tab.on("console", (message) => {
        const { url } = message.location();
        // The browser asks for this one by itself.
        if (["error", "warning"].includes(message.type()) && !url.endsWith("/favicon.ico")) fault(`${message.text()} ${url}`);
    });
    tab.on("pageerror", (error) => fault(error.stack));
    return tab;
}

/** Looks again and again until it holds. */
export async function until(holds, what) {
    for (const end = Date.now() + PATIENCE; Date.now() < end; await new Promise((soon) => setTimeout(soon, 50))) {
        if (await holds()) return;
    }
    assert.fail(`not within ${PATIENCE} ms: ${what}`);
}

/** Serves a folder on a free port, with its 404.html for what is not there. */
export async function serve(folder) {
    const server = createServer(async ({ url }, response) => {
        const path = normalize(decodeURIComponent(new URL(url, "http://127.0.0.1").pathname));
        const file = join(folder, path.endsWith("/") ? `${path}index.html` : path);
        const [status, body] = await readFile(file).then(
            (body) => [200, body],
            async () => [404, await readFile(join(folder, "404.html")).catch(() => "not found")],
        );
        const type = TYPES[status === 200 ? extname(file) : ".html"] ?? "text/plain; charset=utf-8";
        response.writeHead(status, { "content-type": type }).end(body);
    });
    await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
    return {
        origin: `http://127.0.0.1:${server.address().port}`,
        stop: () => {
            server.close();
            server.closeAllConnections();
        },
    };
}

/** Takes target/screenshots/<name>-<size>-<theme>.png of what a tab shows after `go(tab)`, in both sizes and themes;
 * with `options`, such as fullPage, of the picture. */
export async function shoot(browser, name, go, options = {}) {
    for (const size of Object.keys(SIZES)) {
        for (const theme of ["light", "dark"]) {
            const tab = await open(browser, size, theme);
            await go(tab);
            await tab.screenshot({ path: join(root, `target/screenshots/${name}-${size}-${theme}.png`), ...options });
            await tab.context().close();
        }
    }
}

/** What axe finds serious or critical in a tab and its frames, a line for each rule; `but` are selectors of elements
 * that it is not to look at. */
export async function violations(tab, but = []) {
    for (const frame of tab.frames()) await frame.evaluate(axe.source);
    const found = await tab.evaluate((exclude) => window.axe.run({ exclude }), but);
    return found.violations
        .filter(({ impact }) => ["serious", "critical"].includes(impact))
        .map(({ id, help, nodes }) => `${id} (${help}): ${nodes.map((node) => node.target.join(" ")).join(", ")}`);
}
