/** Servers of the tests' own, on free ports. Whatever is started is stopped by the function that is returned with it. */

import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { Server as HttpServer } from 'node:http'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** The module that the servers load. */
export const MODULE = resolve(process.env['RATELIMIT_MODULE'] ?? process.env['MODULE'] ?? '../../target/release/libredis_ratelimit.so')

// So that what is stopped from outside ends its servers, too.
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => process.exit(1))

export interface Server {
  port: number
  url: string
  process: ChildProcess
  /** Sends a command with redis-cli, and returns its output. */
  cli(...words: string[]): Promise<string>
  stop(): Promise<void>
}

/** A port that was free a moment ago, and whose cluster bus port exists. */
export async function freePort(): Promise<number> {
  for (;;) {
    const listener = createServer().listen(0, '127.0.0.1')
    await once(listener, 'listening')
    const { port } = listener.address() as AddressInfo
    listener.close()
    await once(listener, 'close')
    if (port < 55_000) return port
    await pause(1)
  }
}

/** Starts redis-server with the module, or without it, or as a sentinel, and waits until it replies. */
export async function startServer(options: string[] = [], { module = true, sentinel = false, port = 0 } = {}): Promise<Server> {
  for (let left = 4; ; left--) {
    const server = spawned(options, { module: module && !sentinel, sentinel }, port || (await freePort()))
    const { process: child } = server
    // Another program may take the port, or that of its cluster bus, first: then the server ends, and is started anew.
    const ended = () => child.exitCode !== null
    const replies = async () => (await server.cli('INFO', 'server')).includes(`process_id:${child.pid}\r`)
    try {
      await until(async () => ended() || (await replies()), 'a start of redis-server')
      if (!ended()) return server
      if (left === 0) throw new Error(`redis-server ended with ${child.exitCode}: is the module built?`)
    } catch (error) {
      await server.stop()
      throw error
    }
    await server.stop()
  }
}

function spawned(options: string[], { module, sentinel }: { module: boolean; sentinel: boolean }, port: number): Server {
  const folder = mkdtempSync(join(tmpdir(), 'redis-ratelimit-'))
  const words = ['--bind', '127.0.0.1', '--port', String(port), '--dir', folder, ...options]
  if (module) words.push('--loadmodule', MODULE)
  if (sentinel) {
    // It writes what it finds out into its file.
    const file = join(folder, 'sentinel.conf')
    writeFileSync(file, '')
    words.unshift(file, '--sentinel')
  } else words.push('--save', '')
  const child = spawn('redis-server', words, { stdio: 'ignore' })
  process.once('exit', () => child.kill('SIGKILL'))
  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    process: child,
    cli: async (...command) => (await run('redis-cli', ['-p', String(port), ...command])).stdout,
    async stop() {
      if (child.exitCode === null && child.signalCode === null) {
        child.kill('SIGKILL')
        await once(child, 'exit')
      }
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** A cluster. */
export interface Nodes {
  /** The primaries, and then a replica of the first, if there is one. */
  nodes: Server[]
  port: number
  stop(): Promise<void>
}

/**
 * Starts a cluster of three primaries, and waits until all of them say that it is complete.
 *
 * @param options.replica - whether the first has a replica. It takes over when the first was silent for 1.5 s
 */
export async function startCluster({ replica = false } = {}): Promise<Nodes> {
  const nodes: Server[] = []
  const stop = async () => void (await Promise.all(nodes.map((node) => node.stop())))
  const options = ['--cluster-enabled', 'yes', '--ratelimit.top', '100']
  if (replica)
    options.push('--cluster-node-timeout', '1500', '--cluster-replica-validity-factor', '0', '--repl-diskless-sync-delay', '0')
  try {
    for (let i = 0; i < (replica ? 4 : 3); i++) nodes.push(await startServer(options))
    const addresses = nodes.slice(0, 3).map(({ port }) => `127.0.0.1:${port}`)
    await run('redis-cli', ['--cluster', 'create', ...addresses, '--cluster-yes'])
    const isComplete = async (node: Server) => (await node.cli('CLUSTER', 'INFO')).includes('cluster_state:ok')
    const [first, , , last] = nodes as [Server, Server, Server, Server?]
    await until(() => isComplete(first), 'a cluster')
    if (last !== undefined) {
      await last.cli('CLUSTER', 'MEET', '127.0.0.1', String(first.port))
      const id = (await first.cli('CLUSTER', 'MYID')).trim()
      await until(async () => (await last.cli('CLUSTER', 'REPLICATE', id)).startsWith('OK'), 'a replica')
    }
    for (const node of nodes) {
      await until(() => isComplete(node), 'a complete cluster')
      if (last !== undefined) await until(async () => (await node.cli('CLUSTER', 'SLOTS')).includes(String(last.port)), 'a known replica')
    }
  } catch (error) {
    await stop()
    throw error
  }
  return { nodes, port: nodes[0]!.port, stop }
}

/** An application that listens. */
export interface App {
  url: string
  close(): unknown
}

/** Lets the server of an application listen. */
export async function listening(server: HttpServer): Promise<App> {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const close = () => (server.closeAllConnections(), server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close }
}

/** Waits until a question is answered with true. Errors count as false. */
export async function until(question: () => Promise<boolean> | boolean, what: string, ms = 20_000): Promise<void> {
  const end = Date.now() + ms
  while (!(await Promise.resolve(question()).catch(() => false))) {
    if (Date.now() > end) throw new Error(`${what} did not happen in ${ms} ms`)
    await pause(30)
  }
}
