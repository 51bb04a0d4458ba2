// A real redis-server with the module, on a free port, and one connection to it.
import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { Redis } from "ioredis";

/** A server; `call(lines)` sends commands, their words between spaces, all at once, and gives their replies in order;
 * an error as an Error. */
export async function startRedis(module) {
    const folder = await mkdtemp(join(tmpdir(), "ratelimit-page-"));
    const port = await freePort();
    const options = ["--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", folder, "--loadmodule", module];
    const server = spawn("redis-server", options.map(String), { stdio: ["ignore", "pipe", "inherit"] });
    const kill = () => server.kill("SIGKILL");
    process.on("exit", kill);
    let log = "";
    server.stdout.on("data", (said) => { log += said; });
    const stop = async () => {
        kill();
        process.off("exit", kill);
        await rm(folder, { recursive: true, force: true });
    };
    // Until the server answers, or is gone.
    const retryStrategy = (times) => (times <= 100 && server.exitCode === null ? 100 : null);
    const redis = new Redis(port, "127.0.0.1", { retryStrategy, maxRetriesPerRequest: null });
    // What comes of it is told by the call that it ends.
    redis.on("error", () => {});
    await redis.ping().catch(async (error) => {
        await stop();
        throw new Error(`${error.message}\n${log}`);
    });
    const call = async (lines) => {
        const pipeline = redis.pipeline();
        for (const line of lines) pipeline.call(...line.split(" "));
        return (await pipeline.exec()).map(([error, reply]) => error ?? reply);
    };
    return { call, stop: () => { redis.disconnect(); return stop(); } };
}

function freePort() {
    return new Promise((resolve, reject) => {
        const probe = createServer().once("error", reject);
        probe.listen(0, "127.0.0.1", () => {
            const { port } = probe.address();
            probe.close(() => resolve(port));
        });
    });
}
