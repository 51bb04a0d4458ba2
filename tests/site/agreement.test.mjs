// The comparing page's arithmetic against a real server with the module.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { root } from "./browser.mjs";
import { trials, visit } from "./page.mjs";
import { startRedis } from "./redis.mjs";

// When a trial begins, in microseconds.
const START = 1_700_002_800_000_000;
let redis;

before(async () => {
    redis = await startRedis(process.env.MODULE ?? join(root, "target/release/libredis_ratelimit.so"));
});

after(() => redis?.stop());

const SETTINGS = [
    { shape: "steady" },
    { shape: "edge", period: 5000 },
    { shape: "abuser", shared: true },
    { shape: "slow" },
    { shape: "budget" },
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
    test(`what the page computes is what a server with the module replies, call by call, ${JSON.stringify(settings)}`, () =>
        visit({}, async (tab) => {
            for (const { id, figures } of await trials(tab, settings)) {
                // A server remembers hungry tenants by its own clock. tests/it/engine/ compares them.
                if (id === "concurrent-tenant") continue;
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

test("a replay says what the server replies, also to a request of the visitor's", () =>
    visit({}, async (tab) => {
        const calls = { gcra: "RL.GCRA user:0 49 100 10s", "sliding-log": "RL.SLIDINGLOG user:0 100 10s", "leaky-bucket": "RL.LEAKYBUCKET user:0 50 100 10s" };
        const given = { shape: "bursts", strategies: Object.keys(calls), sent: [4_000_000, 5_200_000, 30_000_000] };
        const { traffic: { asked, sent }, lanes } = await tab.evaluate((given) => window.ratelimit.replay(given), given);
        assert.deepEqual(sent.map((place) => asked[place]), given.sent);
        for (const { id, replay: { from, retry, remaining } } of lanes) {
            await redis.call(["FLUSHALL"]);
            const replies = await redis.call(asked.map((at) => `${calls[id]} AT ${START + at}`));
            // limited, limit, remaining, and the time until a request may act or ask again.
            const ours = asked.map((at, i) => [Number(from[i] < 0), remaining[i], from[i] < 0 ? retry[i] : (from[i] - at) / 1000]);
            assert.deepEqual(ours, replies.map(([limited, , left, wait]) => [limited, left, wait]), id);
        }
    }));

test("every command on the page is one that the server takes", () =>
    visit({ view: "all=true" }, async (tab) => {
        const commands = await tab.$$eval(".card .command code", (all) => all.map((code) => code.textContent));
        assert.equal(new Set(commands).size, (await trials(tab)).length);
        for (const command of commands) {
            const [, reply] = await redis.call(["FLUSHALL", command]);
            assert.equal([reply].flat(2)[0], 0, `${command}: ${reply}`);
        }
    }));
