/** A gate in front of a plain server of `node:http`, as the README shows it. */

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { Concurrent } from 'redis-ratelimit'
import { endWith, Gate } from 'redis-ratelimit/gate'
import { KINDS } from './kinds.js'
import { limiterOn } from './limiters.js'
import { startServer, until } from './servers.js'

test('a gate limits the requests of a plain server, and is left when the response is over', async (t) => {
  const redis = await startServer()
  t.after(() => redis.stop())
  const { limiter } = await limiterOn(t, KINDS[0]!, redis.port)
  const address = (request: IncomingMessage) => request.socket.remoteAddress
  const gate = new Gate({
    limiter,
    rules: [
      { name: 'default', key: address, limit: '2/h' },
      { name: 'streams', key: address, limit: new Concurrent(1, '1m') },
    ],
  })
  await gate.ready()
  const server = createServer(async (request, response) => {
    const pass = await gate.enter(request)
    if (!endWith(response, pass)) return
    response.writeHead(pass.refusal?.status ?? 200, pass.headers).end(pass.refusal?.body ?? 'hello')
  }).listen(0, '127.0.0.1')
  t.after(() => server.close())
  await once(server, 'listening')
  const ask = async () => {
    const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    return [response.status, await response.text(), response.headers.get('retry-after')] as const
  }
  const isLeft = async () => (await redis.cli('EXISTS', 'streams:127.0.0.1')).trim() === '0'
  for (let i = 0; i < 2; i += 1) {
    assert.deepEqual(await ask(), [200, 'hello', null])
    await until(isLeft, 'a release')
  }
  const [status, body, wait] = await ask()
  assert.deepEqual([status, JSON.parse(body)['violated-policies'], Number(wait) > 0], [429, ['default'], true])
})
