/** A proxy that can go silent: what is sent over its connections from then on is lost, and they stay open. */

import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import type { TestContext } from 'node:test'

export interface Proxy {
  port: number
  /** All connections until now go silent. Later ones work. */
  silence(): void
  /** Connections from now on lead to the server at this port. */
  leadTo(port: number): void
  /** Ends all connections until now. */
  cut(): void
  /** Connections from now on are accepted, and get nothing. */
  hold(): void
  /** How many of them there are. */
  held(): number
  /** They, and those that come later, work. */
  release(): void
}

export async function proxyTo(t: TestContext, port: number): Promise<Proxy> {
  let target = port
  const pairs = new Set<Socket>()
  let waiting: Socket[] | undefined
  const proxy = createServer((near) => {
    if (waiting === undefined) join(near)
    else {
      waiting.push(near)
      near.on('error', () => undefined)
    }
  }).listen(0, '127.0.0.1')
  function join(near: Socket): void {
    const far = connect(target, '127.0.0.1')
    near.pipe(far).pipe(near)
    for (const socket of [near, far]) {
      pairs.add(socket)
      socket.on('error', () => undefined)
      socket.on('close', () => [near, far].forEach((one) => (one.destroy(), pairs.delete(one))))
    }
  }
  await once(proxy, 'listening')
  t.after(() => {
    proxy.close()
    for (const socket of [...pairs, ...(waiting ?? [])]) socket.destroy()
  })
  return {
    port: (proxy.address() as AddressInfo).port,
    silence() {
      for (const socket of pairs) {
        socket.unpipe()
        socket.removeAllListeners('data')
        socket.resume()
      }
    },
    leadTo: (port) => void (target = port),
    cut() {
      for (const socket of pairs) socket.destroy()
    },
    hold: () => void (waiting = []),
    held: () => waiting?.length ?? 0,
    release() {
      const held = waiting ?? []
      waiting = undefined
      held.forEach(join)
    },
  }
}
