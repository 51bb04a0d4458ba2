// The documentation site as tools/site built it, in a browser.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFile, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";

import { launch, open, root, serve, shoot, site, until, violations } from "./browser.mjs";

let browser, server, faults;
// Of each page: the links and ids in it, and what scrolls sideways on a phone.
const pages = new Map();

before(async () => {
    browser = await launch();
    server = await serve(site);
    const tab = await open(browser, "phone");
    for (const name of await readdir(site, { recursive: true })) {
        if (!name.endsWith(".html")) continue;
        await tab.goto(`${server.origin}/${name}`);
        pages.set(name, await tab.evaluate(look));
    }
    faults = tab.faults;
    await tab.context().close();
});

after(async () => {
    await browser?.close();
    server?.stop();
});

// Runs in the page.
function look() {
    const all = [...document.querySelectorAll("*")];
    const links = all
        // A heading's link to itself is no promise, and on the 404 page, with its <base>, it leads elsewhere.
        .filter((element) => !element.matches("a.header"))
        .flatMap((element) => [element.href, element.src])
        .filter((link) => typeof link === "string" && link);
    const sideways = all
        .filter((element) => element.scrollWidth > element.clientWidth + 1)
        .filter((element) => getComputedStyle(element).overflowX !== "visible")
        .filter((element) => !element.closest(".table-wrapper, pre"))
        .map((element) => `${element.localName}#${element.id}.${element.className}`);
    if (document.scrollingElement.scrollWidth > document.documentElement.clientWidth) sideways.push("the page");
    return { links, ids: all.map((element) => element.id).filter(Boolean), sideways };
}

const exists = (path) =>
    stat(path).then(
        (entry) => entry.isFile(),
        () => false,
    );

test("every link leads to a file of the site, and to an id in it", async () => {
    const broken = [];
    for (const [name, { links }] of pages) {
        for (const link of links.filter((link) => link.startsWith(`${server.origin}/`))) {
            const { pathname, hash } = new URL(link);
            const target = decodeURIComponent(pathname.slice(1)) || "index.html";
            const there = pages.get(target);
            const id = decodeURIComponent(hash.slice(1));
            if (!(await exists(join(site, target))) || (id && there && !there.ids.includes(id))) {
                broken.push(`${name} -> ${target}${hash}`);
            }
        }
    }
    assert.deepEqual(broken, []);
    assert.ok(pages.size > 30, `only ${pages.size} pages`);
});

test("every page of docs/ is in the site", async () => {
    const written = (await readdir(join(root, "docs"))).filter((name) => name.endsWith(".md"));
    const missing = written.filter((name) => !pages.has(`docs/${name.replace(/md$/, "html")}`));
    assert.deepEqual(missing, [], "add them to docs/site/SUMMARY.md");
});

test("no page asks for anything outside, and none has an error", () => {
    assert.deepEqual(faults, []);
});

test("on a phone only tables and code scroll sideways, each within itself", () => {
    // What scrolls within the page of the frame is its own affair.
    const book = [...pages].filter(([name]) => name !== "compare.html");
    const wide = book.filter(([, { sideways }]) => sideways.length);
    assert.deepEqual(wide.map(([name, { sideways }]) => `${name}: ${sideways}`), []);
});

test("on a phone a table fades out where it goes on", async () => {
    const tab = await open(browser, "phone");
    await tab.goto(`${server.origin}/docs/settings.html`);
    const table = tab.locator(".table-wrapper").first();
    const fades = (does) => until(async () => (await table.evaluate((wide) => getComputedStyle(wide).maskImage !== "none")) === does, `it fades: ${does}`);
    await fades(true);
    await tab.emulateMedia({ media: "print" });
    await fades(false);
    await tab.emulateMedia({ media: "screen" });
    await fades(true);
    await table.evaluate((wide) => { wide.scrollLeft = wide.scrollWidth; });
    await fades(false);
    await tab.context().close();
});

test("a page that does not exist says so, with the way back", async () => {
    const tab = await open(browser);
    const answer = await tab.goto(`${server.origin}/docs/nowhere.html`);
    assert.equal(answer.status(), 404);
    await tab.locator("#mdbook-sidebar a", { hasText: "Overview" }).click();
    await tab.waitForURL(`${server.origin}/README.html`);
    await tab.context().close();
});

test("the keyboard opens and closes the menu", async () => {
    const tab = await open(browser, "phone");
    await tab.goto(`${server.origin}/README.html`);
    const link = tab.locator("#mdbook-sidebar a", { hasText: "Windows" });
    const seen = () => link.evaluate((element) => element.getBoundingClientRect().right > 0 && element.checkVisibility());
    assert.equal(await seen(), false);
    for (const [key, open] of [["Enter", true], [" ", false]]) {
        await tab.locator("#mdbook-sidebar-toggle").press(key);
        await until(async () => (await seen()) === open, `${key} makes the menu ${open ? "open" : "closed"}`);
    }
    await tab.context().close();
});

test("the prompt, the reply and the comments of a session are told apart", async () => {
    for (const theme of ["light", "dark"]) {
        const tab = await open(browser, "desktop", theme);
        await tab.goto(`${server.origin}/docs/commands/rl.gcra.html`);
        const session = tab.locator("code.language-redis-cli").first();
        const colours = (text) => session.locator("span", { hasText: text }).first().evaluate((part) => getComputedStyle(part).color);
        const seen = [await session.evaluate((code) => getComputedStyle(code).color)];
        for (const part of ["127.0.0.1:6379>", "1) (integer) 0"]) seen.push(await colours(part));
        assert.equal(new Set(seen).size, seen.length, seen.join("; "));
        assert.equal(await colours("# limited: admitted"), await colours("127.0.0.1:6379>"));
        await tab.context().close();
    }
});

test("the colours of code follow its language, and are not led astray", async () => {
    const tab = await open(browser);
    await tab.goto(`${server.origin}/README.html`);
    const coloured = (language, text) =>
        tab.evaluate(([language, text]) => {
            const code = Object.assign(document.createElement("code"), { className: `language-${language}`, textContent: text });
            window.hljs.highlightBlock(code);
            return [...code.children].map((part) => [part.className.replace("hljs-", ""), part.textContent]).filter(([, text]) => text);
        }, [language, text]);
    for (const [language, text, expected] of [
        ["redis-cli", "127.0.0.1:6379> GET a\r\n1\u2028 # one", [["comment", "127.0.0.1:6379> "], ["reply", "1\u2028"], ["comment", " # one"]]],
        ["console", "$ docker run \\\n  image\nready", [["comment", "$ "], ["reply", "ready"]]],
        ["python", "a // b\n# c", [["comment", "# c"]]],
        ["sh", "run -- --flag # c", [["comment", "# c"]]],
        ["lua", "f() -- c", [["comment", "-- c"]]],
        ["js", "x.end(); limiter.local() // c", [["comment", "// c"]]],
        ["js", "'a\\\nb'", [["string", "'a\\\nb'"]]],
        ["constructor", "a", []],
        // In runs of spaces, too, the time grows with the length only.
        ["redis-cli", `a${" ".repeat(200_000)}b`, [["reply", `a${" ".repeat(200_000)}b`]]],
    ]) assert.deepEqual(await coloured(language, text), expected, `${language}: ${text.slice(0, 50)}`);
    await tab.context().close();
});

test("a pasted page is searched for by its first twelve words", async () => {
    const tab = await open(browser);
    await tab.goto(`${server.origin}/README.html`);
    await tab.keyboard.press("/");
    await tab.waitForFunction(() => window.search.index);
    const found = (words) => tab.evaluate((query) => window.elasticlunr.Index.load(window.search.index).search(query), words.join(" "));
    const words = ["bucket", ...Array(11).fill("token"), "lease", "window"];
    assert.deepEqual(await found(words), await found(words.slice(0, 12)));
    assert.notDeepEqual(await found(words), await found(words.slice(0, 11)));
    await tab.context().close();
});

test("the search's file is named by what is in it, for the caches of browsers", async () => {
    const [name, ...more] = (await readdir(site)).filter((name) => name.startsWith("elasticlunr-"));
    assert.deepEqual(more, []);
    const ours = await readFile(join(root, "docs/site/search.js"));
    assert.deepEqual(await readFile(join(site, name)), ours);
    assert.equal(name, `elasticlunr-${createHash("sha256").update(ours).digest("hex").slice(0, 8)}.min.js`);
});

// What readers look for, and the page that answers it.
for (const [query, page] of [
    ["unban", "questions.html#how-do-i-unban-or-unblock-a-user"],
    ["per user", "questions.html#how-do-i-limit-each-user"],
    ["token bucket vs sliding window", "questions.html#token-bucket-vs-sliding-window-which-one"],
    ["rl.gcra", "docs/commands/rl.gcra.html#rlgcra"],
    ["countrefused", "docs/windows.html#countrefused"],
    ["setting", "docs/operating.html#settings"],
    ["string", "docs/commands/rl.policy.html#arguments"],
]) {
    test(`the search for "${query}" finds its page first`, async () => {
        const tab = await open(browser);
        await tab.goto(`${server.origin}/README.html`);
        await tab.keyboard.press("/");
        await tab.locator("#mdbook-searchbar").pressSequentially(query);
        await tab.locator("#mdbook-searchresults-header", { hasText: `'${query}'` }).waitFor();
        const first = await tab.locator("#mdbook-searchresults a").first().getAttribute("href");
        assert.equal(first.replace(/\?.*#/, "#"), page);
        await tab.context().close();
    });
}

// Opened from a file, every page is an origin of its own.
for (const from of ["a server", "files"]) {
    const origin = () => (from === "files" ? pathToFileURL(site).href : server.origin);

    test(`the search finds a word and leads to a page that has it, from ${from}`, async () => {
        const tab = await open(browser);
        await tab.goto(`${origin()}/index.html`);
        await tab.keyboard.press("/");
        await tab.locator("#mdbook-searchbar").pressSequentially("COUNTREFUSED");
        // Until the whole word is typed, the results are those of its beginning.
        await tab.locator('#mdbook-searchresults a[href*="highlight=countrefused" i]').first().click();
        await tab.waitForURL(/highlight=/);
        assert.notEqual(new URL(tab.url()).pathname, new URL(`${origin()}/index.html`).pathname);
        assert.match(await tab.locator("main").innerText(), /COUNTREFUSED/);
        assert.deepEqual(tab.faults, []);
        await tab.context().close();
    });

    test(`the front page's frame is as high as what it holds and follows the theme, from ${from}`, async () => {
        const tab = await open(browser);
        await tab.goto(`${origin()}/index.html`);
        const frame = await (await tab.locator("#compare").elementHandle()).contentFrame();
        const height = () => tab.locator("#compare").evaluate((element) => element.clientHeight);
        const content = () => frame.evaluate(() => document.documentElement.getBoundingClientRect().height);
        const fits = async () => Math.abs((await height()) - (await content())) <= 2;
        await frame.waitForSelector(`#results[aria-busy="false"]`);
        await until(fits, "the frame fits the page");

        const before = await height();
        await frame.evaluate(() => {
            const more = document.createElement("div");
            more.id = "more";
            more.style.height = "2000px";
            document.body.append(more);
        });
        await until(async () => (await height()) >= before + 2000 && (await fits()), "the frame grows with the page");
        await frame.evaluate(() => document.getElementById("more").remove());
        await until(async () => (await height()) === before, "the frame shrinks with the page");

        // Text is dark on light, and light on dark.
        const isDark = () =>
            frame.evaluate(() => {
                const [red, green, blue] = getComputedStyle(document.body).color.match(/\d+/g).map(Number);
                return red + green + blue > 384;
            });
        await tab.locator("#mdbook-theme-toggle").click();
        for (const [theme, dark] of [["Navy", true], ["Light", false], ["Coal", true], ["Rust", false]]) {
            await tab.getByRole("menuitem", { name: theme }).click();
            await until(async () => (await isDark()) === dark, `${theme} reaches the frame`);
        }
        await tab.getByRole("menuitem", { name: "Navy" }).click();
        await until(isDark, "Navy reaches the frame");
        await frame.goto(frame.url());
        await until(isDark, "Navy reaches the frame that is loaded again");
        assert.deepEqual(tab.faults, []);
        await tab.context().close();
    });

    test(`from the frame's cards links lead to their pages, and its controls can be used, from ${from}`, async () => {
        const tab = await open(browser);
        await tab.goto(`${origin()}/index.html`);
        const frame = await (await tab.locator("#compare").elementHandle()).contentFrame();
        await frame.waitForSelector(`#results[aria-busy="false"]`);
        const links = frame.locator(".foot a:visible");
        assert.equal(await links.count(), await frame.locator(".card").count());
        for (const link of await links.evaluateAll((all) => all.map(({ href }) => href))) {
            assert.ok(await exists(join(site, link.replace(`${origin()}/`, ""))), link);
        }
        await frame.getByLabel("Bursts").check();
        await frame.waitForSelector(":root[data-shape=bursts]");
        await links.first().click();
        await tab.waitForURL(`${origin()}/docs/buckets.html`);
        assert.deepEqual(tab.faults, []);
        await tab.context().close();
    });
}

test("pictures are large enough to be read, none is a stop for the Tab key", async () => {
    for (const size of ["desktop", "phone"]) {
        const tab = await open(browser, size);
        await tab.goto(`${server.origin}/docs/shapes.html`);
        const boxes = await tab.$$eval("main p img", (all) => all.map((img) => img.getBoundingClientRect().toJSON()));
        assert.ok(boxes.length >= 8, `${boxes.length} pictures`);
        assert.ok(boxes.every(({ width }) => width > 280), "so small that their texts cannot be read");
        assert.equal(await tab.locator("main :is(input, button):not(pre *)").count(), 0);
        await tab.context().close();
    }
});

for (const name of ["index", "README", "docs/README", "docs/choosing", "docs/commands/rl.gcra", "docs/recipes-plans", "docs/shapes", "docs/operating", "docs/performance"]) {
    for (const theme of ["light", "dark"]) {
        test(`axe finds nothing serious on ${name}, ${theme}`, async () => {
            const tab = await open(browser, theme === "light" ? "desktop" : "phone", theme);
            await tab.goto(`${server.origin}/${name}.html`);
            assert.deepEqual(await violations(tab), []);
            await tab.context().close();
        });
    }

    test(`screenshots of ${name}`, () =>
        shoot(browser, name.replaceAll("/", "-"), (tab) =>
            tab.goto(`${server.origin}/${name}.html`, { waitUntil: "networkidle" }),
        ));
}
